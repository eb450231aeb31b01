package usage

import (
	"context"
	"strings"
	"testing"
	"time"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// asked is a store without usage. It records the queries.
type asked struct{ groups []orchestrator.UsageGroup }

func (a *asked) Usage(_ context.Context, q orchestrator.UsageQuery) ([]orchestrator.UsageRow, error) {
	a.groups = append(a.groups, q.By)
	return nil, nil
}

func (*asked) PlanLimits(context.Context) ([]cli.AccountLimits, error) { return nil, nil }

func (*asked) AuditSince(context.Context, time.Time, int) ([]orchestrator.AuditEntry, error) {
	return nil, nil
}

// oneLanguage has one chat that chose a language.
type oneLanguage lang.Choice

func (l oneLanguage) Languages(context.Context) ([]lang.Choice, error) {
	return []lang.Choice{lang.Choice(l)}, nil
}
func (oneLanguage) SaveLanguage(context.Context, lang.Choice) error { return nil }

// If /usage does not know a word, it lists the words that it knows, and it accepts each of those.
func TestAnUnknownWordOfUsageListsThoseThereAre(t *testing.T) {
	store := &asked{}
	s := &Screen{Store: store, Now: time.Now, Lang: choices(t, "zh")}
	by := orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: 7}}
	page, err := s.Usage(t.Context(), by, "month xyz")
	if want := `不认识 "xyz"。时间范围：today、week、month、year。分组方式：day、agent、model、chat、user。`; err != nil || page.Text != want {
		t.Errorf("it says %q, %v, want %q", page.Text, err, want)
	}
	for _, word := range strings.FieldsFunc(page.Text, func(r rune) bool { return r > 'z' || r < 'a' })[1:] {
		if page, err := s.Usage(t.Context(), by, strings.ToUpper(word)); err != nil || page.Keyboard == nil {
			t.Errorf("%q is answered with %q, %v", word, page.Text, err)
		}
	}
	if page, err := s.Usage(t.Context(), by, "year chat"); err != nil || page.Keyboard == nil || store.groups[len(store.groups)-1] != orchestrator.UsageByConversation {
		t.Errorf("the year by chat: %q, %v", page.Text, err)
	}
}

func choices(t *testing.T, code lang.Language) *lang.Choices {
	t.Helper()
	c, err := lang.OpenChoices(t.Context(), oneLanguage{ID: 7, Chosen: code}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRowsHaveTheNamesOfUsersAndChats(t *testing.T) {
	s := &Screen{Names: &tgapi.ChatNames{}}
	s.Names.LearnUser(7, "Ann")
	s.Names.Learn(-9, "Family")
	for key, want := range map[string]string{
		"7/0": "chat Ann", "-9/0": "chat Family", "-9/5": "chat Family/5", "-9/-3": "chat Family",
		"-8/5": "chat -8/5", "8/0": "chat 8/0", "x": "chat x",
	} {
		if got := s.name(lang.Printer{}, key, orchestrator.UsageByConversation); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if got := s.name(lang.Printer{}, "7", orchestrator.UsageByPerson); got != "Ann" {
		t.Errorf("the user is called %q", got)
	}
}
