package bot

import (
	"context"
	"strings"
	"testing"

	"ductor/lang"
	"ductor/orchestrator"
)

// noLanguages stores nothing.
type noLanguages struct{}

func (noLanguages) Languages(context.Context) ([]lang.Choice, error) { return nil, nil }
func (noLanguages) SaveLanguage(context.Context, lang.Choice) error  { return nil }

// /language lists each word that a user can type once, and accepts each, also the English names and the codes.
func TestAnUnknownLanguageListsTheWordsToType(t *testing.T) {
	choices, err := lang.OpenChoices(t.Context(), noLanguages{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := language{choices}
	for _, chat := range []int64{7, -7} {
		by := orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: chat}}
		page, err := l.command(t.Context(), by, "xx")
		if want := "There are: English, Deutsch, 中文, telegram."; err != nil || !strings.Contains(page.Text, want) {
			t.Errorf("in chat %d it says %q, %v, want %q", chat, page.Text, err, want)
		}
		for word, code := range map[string]lang.Language{
			"Deutsch": "de", "german": "de", "de": "de", "中文": "zh", "Chinese": "zh", "ZH": "zh",
			"telegram": lang.AsTelegram, "English": "en", "en": "en",
		} {
			page, err := l.command(t.Context(), by, word)
			if err != nil || page.Text != choices.Of(chat).Text("language.set") || choices.Chosen(chat) != code {
				t.Errorf("%q is answered with %q, %v", word, page.Text, err)
			}
		}
	}
}
