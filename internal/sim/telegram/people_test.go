package telegram_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-telegram/bot/models"

	"ductor/internal/sim/telegram"
)

// updates fetches and acknowledges all pending updates, decoded by the real client.
func updates(t *testing.T, srv *telegram.Server) []models.Update {
	t.Helper()
	var list []models.Update
	r := must(t, post(t.Context(), t, srv, "getUpdates",
		p{
			"allowed_updates": `["message","edited_message","callback_query","message_reaction","my_chat_member","stopped_message_generation"]`}))
	if err := json.Unmarshal(r.Result, &list); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	if len(list) > 0 {
		post(t.Context(), t, srv, "getUpdates", p{"offset": list[len(list)-1].ID + 1})
	}
	return list
}

func TestWhatPeopleDoReachesTheBot(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		ada := chat.Person()
		updates(t, srv)
		one := func(do func()) models.Update {
			t.Helper()
			do()
			list := updates(t, srv)
			if len(list) != 1 {
				t.Fatalf("%d updates", len(list))
			}
			return list[0]
		}
		var sent telegram.Message
		if u := one(func() { sent = ada.Send(chat, "  /new now ") }); u.Message.Text != "/new now" ||
			u.Message.From.ID != 7 ||
			u.Message.Chat.Type != "private" || u.Message.Entities[0].Type != "bot_command" {
			t.Errorf("a command came as %+v", u.Message)
		}
		if u := one(func() {
			ada.Send(chat, "yes", telegram.ReplyTo(sent.ID))
		}); u.Message.ReplyToMessage.ID != int(sent.ID) {
			t.Errorf("a reply came as %+v", u.Message)
		}
		if u := one(func() { ada.Edit(sent, "/new later") }); u.EditedMessage.Text != "/new later" ||
			u.EditedMessage.EditDate == 0 {
			t.Errorf("an edit came as %+v", u.EditedMessage)
		}
		if u := one(func() {
			ada.SendPhoto(chat, picture(t), telegram.WithCaption("look"))
		}); len(u.Message.Photo) != 2 ||
			u.Message.Photo[1].Width != 8 || u.Message.Photo[1].Height != 6 || u.Message.Caption != "look" ||
			u.Message.Text != "" {
			t.Errorf("a photo came as %+v", u.Message)
		}
		if u := one(func() {
			ada.SendDocument(chat, telegram.File{Name: "a.csv", MIME: "text/csv", Data: []byte("1,2")})
		}); u.Message.Document.FileName != "a.csv" || u.Message.Document.FileSize != 3 {
			t.Errorf("a document came as %+v", u.Message.Document)
		}
		if u := one(func() { ada.SendVoice(chat, []byte("ogg")) }); u.Message.Voice == nil {
			t.Errorf("a voice message came as %+v", u.Message)
		}
		if u := one(func() { ada.SendSticker(chat, "👍") }); u.Message.Sticker == nil || u.Message.Text != "" {
			t.Errorf("a sticker came as %+v", u.Message)
		}
		if u := one(func() { ada.React(sent, "👍") }); u.MessageReaction.NewReaction[0].ReactionTypeEmoji.Emoji != "👍" {
			t.Errorf("a reaction came as %+v", u.MessageReaction)
		}
		if u := one(ada.Block); u.MyChatMember.NewChatMember.Type != models.ChatMemberTypeBanned {
			t.Errorf("blocking came as %+v", u.MyChatMember)
		}
		if u := one(func() { ada.Send(chat, "I am back") }); u.Message.Text != "I am back" {
			t.Errorf("writing again came as %+v", u.Message)
		}
		must(t, post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "good"}))
		must(t, post(t.Context(), t, srv, "sendMessageDraft",
			p{"chat_id": 7, "draft_id": 5, "text": "so", "can_stop": true}))
		if u := one(func() { ada.StopDraft(chat, 5) }); u.StoppedMessageGeneration == nil {
			t.Errorf("stopping a draft came as %+v", u)
		}
	})
}

func TestPastesAndAlbumsArriveInParts(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		long := strings.Repeat("😀", 2048) + "b" + strings.Repeat("c", 4096)
		chat.Person().Paste(chat, long)
		var joined string
		list := updates(t, srv)
		for _, u := range list {
			joined += u.Message.Text
		}
		if len(list) != 3 || joined != long {
			t.Errorf("a paste arrived in %d parts", len(list))
		}
		chat.Person().SendAlbum(chat, []telegram.File{{MIME: "image/png", Data: picture(t)},
			{MIME: "image/png", Data: picture(t)}},
			telegram.WithCaption("both"))
		list = updates(t, srv)
		if len(list) != 2 || list[0].Message.MediaGroupID == "" ||
			list[0].Message.MediaGroupID != list[1].Message.MediaGroupID ||
			list[0].Message.Caption != "both" || list[1].Message.Caption != "" {
			t.Errorf("an album arrived as %d updates", len(list))
		}
	})
}

func TestPrivacyModeHidesGroupTalk(t *testing.T) {
	inBubble(t, telegram.Options{HideGroupTalk: true}, func(t *testing.T, srv *telegram.Server, _ *telegram.Chat) {
		group := srv.Group(-1, "Family")
		bob := srv.Person(9, "Bob")
		bot := must(t, post(t.Context(), t, srv, "sendMessage", p{"chat_id": -1, "text": "I am here"}))
		var m struct {
			ID telegram.MessageID `json:"message_id"`
		}
		if err := json.Unmarshal(bot.Result, &m); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]int{"hello all": 0, "/new": 1, "/new@ductor_bot": 1, "/new@other_bot": 0,
			"hey @ductor_bot": 1} {
			bob.Send(group, text)
			if got := len(updates(t, srv)); got != want {
				t.Errorf("%q: %d updates, want %d", text, got, want)
			}
		}
		bob.Send(group, "yes", telegram.ReplyTo(m.ID))
		if got := len(updates(t, srv)); got != 1 {
			t.Errorf("a reply to the bot: %d updates", got)
		}
	})
}

func TestButtons(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		ada := chat.Person()
		must(t, post(t.Context(), t, srv, "sendMessage",
			p{"chat_id": 7, "text": "Allow?", "reply_markup": keys("Yes", "y:1")}))
		m, _ := chat.View().Last()
		if !m.HasButton("Yes") || !m.HasButton("y:1") || m.HasButton("No") {
			t.Errorf("buttons %v", m.Keyboard)
		}
		if _, err := ada.Tap(m, "No"); !errors.Is(err, telegram.ErrNoButton) {
			t.Errorf("a button that is not there: %v", err)
		}
		tap, err := ada.Tap(m, "Yes")
		if err != nil {
			t.Fatal(err)
		}
		u := updates(t, srv)[0].CallbackQuery
		if u.ID != tap.ID || u.Data != "y:1" || u.From.ID != 7 || u.Message.Message.ID != int(m.ID) ||
			len(u.Message.Message.ReplyMarkup.InlineKeyboard) != 1 {
			t.Errorf("the press came as %+v", u)
		}
		must(t, post(t.Context(), t, srv, "answerCallbackQuery", p{"callback_query_id": u.ID, "text": "ok"}))
		if a, err := tap.Answer(t.Context()); a.Text != "ok" || err != nil {
			t.Errorf("answer %+v, %v", a, err)
		}
		if got := post(t.Context(), t, srv, "answerCallbackQuery", p{"callback_query_id": u.ID}); got.OK {
			t.Error("a second answer was taken")
		}
		// Without an answer the wait ends, and a later answer fails.
		began := time.Now()
		if _, err := ada.Press(t.Context(), m, "y:1"); !errors.Is(err, telegram.ErrNoAnswer) ||
			time.Since(began) != 30*time.Second {
			t.Errorf("a press without an answer: %v after %v", err, time.Since(began))
		}
		late := updates(t, srv)[0].CallbackQuery
		if got := post(t.Context(), t, srv, "answerCallbackQuery",
			p{"callback_query_id": late.ID}).refusal(); !strings.Contains(got, "query is too old") {
			t.Errorf("a late answer: %s", got)
		}
		// A phone with an old state presses a button of a deleted message.
		must(t, post(t.Context(), t, srv, "deleteMessage", p{"chat_id": 7, "message_id": m.ID}))
		ada.TapData(m, "y:0")
		if u := updates(t,
			srv)[0].CallbackQuery; u.Message.Type != models.MaybeInaccessibleMessageTypeInaccessibleMessage ||
			u.Data != "y:0" {
			t.Errorf("a stale press came as %+v", u)
		}
		if _, err := ada.Tap(m, "Yes"); !errors.Is(err, telegram.ErrNoButton) {
			t.Errorf("a button of a deleted message: %v", err)
		}
	})
}

func TestAwaitingIsDrivenByEvents(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		go func() {
			time.Sleep(time.Hour)
			post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "part"})
			time.Sleep(time.Hour)
			post(t.Context(), t, srv, "editMessageText", p{"chat_id": 7, "message_id": 1, "text": "part and whole"})
		}()
		asked, began := 0, time.Now()
		m, err := chat.AwaitMessage(t.Context(), func(m telegram.Message) bool {
			asked++
			return m.Text == "part and whole"
		})
		if err != nil || len(m.Versions) != 2 || time.Since(began) != 2*time.Hour || asked != 2 {
			t.Errorf("%+v, %v after %v, asked %d times", m, err, time.Since(began), asked)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = chat.AwaitText(short, "never")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Ductor: part and whole") {
			t.Errorf("an await in vain: %v", err)
		}
		go func() { time.Sleep(time.Minute); srv.Close() }()
		if _, err := chat.AwaitText(t.Context(), "never"); !errors.Is(err, telegram.ErrClosed) {
			t.Errorf("an await at the end: %v", err)
		}
	})
}

func TestCallsAreRecordedAndTold(t *testing.T) {
	inBubble(t, telegram.Options{KeepCalls: 3}, func(t *testing.T, srv *telegram.Server, _ *telegram.Chat) {
		var told []string
		srv.OnCall(func(c telegram.Call) { told = append(told, c.Method+" "+c.Description) })
		post(t.Context(), t, srv, "getMe", nil)
		post(t.Context(), t, srv, "sendVideo", p{"chat_id": 7})
		post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "x"})
		post(t.Context(), t, srv, "editMessageText", p{"chat_id": 7, "message_id": 5, "text": "x"})
		calls := srv.Calls()
		if len(calls) != 3 || calls[0].Method != "sendVideo" || calls[0].Code != 404 {
			t.Errorf("kept %+v", calls)
		}
		if failed := srv.Calls(telegram.Failed, telegram.InChat(7), telegram.Writes); len(failed) != 2 ||
			failed[1].Description != "Bad Request: message to edit not found" {
			t.Errorf("failed %+v", failed)
		}
		if got := strings.Join(told, ", "); got != "getMe , sendVideo Not Found: method not found, sendMessage , editMessageText Bad Request: message to edit not found" {
			t.Errorf("told %s", got)
		}
		if sent := srv.Calls(telegram.Methods("sendMessage"), telegram.Succeeded); len(sent) != 1 ||
			sent[0].Message != 1 || sent[0].Params["text"] != "x" {
			t.Errorf("sent %+v", sent)
		}
		if _, err := srv.AwaitCalls(t.Context(), 1, telegram.Methods("sendMessage")); err != nil {
			t.Error(err)
		}
	})
}

func TestMemoryIsBoundedWhenAsked(t *testing.T) {
	opts := telegram.Options{KeepMessages: 2, KeepVersions: 3, KeepFileBytes: 10}
	inBubble(t, opts, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		old := chat.Person().SendDocument(chat, telegram.File{Data: []byte("12345678")})
		chat.Person().SendDocument(chat, telegram.File{Data: []byte("12345678")}, telegram.InOneGo())
		must(t, post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "0"}))
		for i := range 5 {
			must(t, post(t.Context(), t, srv, "editMessageText", p{"chat_id": 7, "message_id": 3, "text": itoa(i + 1)}))
		}
		h := chat.History()
		if len(h) != 2 || len(h[1].Versions) != 3 || h[1].Versions[2].Text != "5" {
			t.Errorf("kept %+v", h)
		}
		if _, ok := srv.FileData(old.Media.FileID); ok {
			t.Error("the oldest file is still there")
		}
		if got := post(t.Context(), t, srv, "getFile", p{"file_id": old.Media.FileID}); got.OK {
			t.Error("the oldest file can still be asked for")
		}
	})
}

func TestDraftsShowUntilTheMessageOrThirtySeconds(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		draft := func(text string) {
			must(t, post(t.Context(), t, srv, "sendMessageDraft", p{"chat_id": 7, "draft_id": 5, "text": text}))
		}
		draft("thin")
		draft("thinking")
		if d := chat.View().Drafts; len(d) != 1 || d[0].Text != "thinking" {
			t.Errorf("drafts %+v", d)
		}
		time.Sleep(telegram.DraftLife)
		if d := chat.View().Drafts; len(d) != 0 {
			t.Errorf("an old draft: %+v", d)
		}
		draft("again")
		must(t, post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "the answer"}))
		if d := chat.View().Drafts; len(d) != 0 {
			t.Errorf("a draft beside its message: %+v", d)
		}
	})
}

func TestOnlyADraftWithTheButtonIsStoppedAndOnce(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		draft := func(id int, text string, more p) {
			must(t, post(t.Context(), t, srv, "sendMessageDraft",
				with(p{"chat_id": 7, "draft_id": id, "text": text}, more)))
		}
		ada := chat.Person()
		draft(1, "no button", nil)
		if ada.StopDraft(chat, 1) || ada.StopDraft(chat, 2) {
			t.Error("a draft without the button, or none at all, was stopped")
		}
		draft(2, "", p{"can_stop": true, "keep_on_stop": true}) // an empty draft shows that the bot thinks
		draft(2, "as far as", p{"can_stop": true, "keep_on_stop": true})
		if d := chat.View().Drafts; len(d) != 1 || d[0].Text != "as far as" || !d[0].CanStop {
			t.Errorf("another draft does not replace the first: %+v", d)
		}
		if !ada.StopDraft(chat, 2) || ada.StopDraft(chat, 2) {
			t.Error("a draft is stopped once")
		}
		draft(2, "as far as it goes", p{"can_stop": true})
		if d := chat.View().Drafts; len(d) != 1 || d[0].Text != "as far as" {
			t.Errorf("a stopped draft went on: %+v", d)
		}
		draft(3, "gone", p{"can_stop": true})
		if !ada.StopDraft(chat, 3) || len(chat.View().Drafts) != 0 {
			t.Errorf("a stopped draft stayed: %+v", chat.View().Drafts)
		}
	})
}

func TestTranscriptAndTerminal(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		said := chat.Person().Send(chat, "hello\nworld")
		chat.Person().SendDocument(chat, telegram.File{Name: "a.txt"}, telegram.WithCaption("read"))
		must(t, post(t.Context(), t, srv, "setMessageReaction",
			p{"chat_id": 7, "message_id": said.ID, "reaction": `[{"type":"emoji","emoji":"👀"}]`}))
		must(t, post(t.Context(), t, srv, "sendMessage", p{
			"chat_id": 7, "text": "see code and docs\nnow\u009b31m", "reply_markup": keys("Stop", "s"),
			"entities": []p{{"type": "bold", "offset": 0, "length": 3}, {"type": "code", "offset": 4, "length": 4},
				{"type": "text_link", "offset": 13, "length": 8, "url": "https://go.dev"}},
		}))
		want := "Ada: hello\n    world\n    👀\nAda: [document a.txt] read\nDuctor: see code and docs\n    now\u009b31m\n    [Stop]\n"
		if got := chat.Transcript(); got != want {
			t.Errorf("transcript\n%q\nwant\n%q", got, want)
		}
		m, _ := chat.View().Last()
		wantANSI := "\x1b[1msee\x1b[0m \x1b[33mcode\x1b[0m and \x1b[34mdocs\x1b[0m\n\x1b[34mnow\x1b[0m\x1b[2m (https://go.dev/)\x1b[0m 31m\n\x1b[7m Stop \x1b[0m"
		if got := m.ANSI(); got != wantANSI {
			t.Errorf("terminal\n%q\nwant\n%q", got, wantANSI)
		}
	})
}

func TestCloseWakesEveryCallAndTakesNoMore(t *testing.T) {
	srv := telegram.New(telegram.Options{})
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	if err := srv.Start(); err == nil {
		t.Error("it started twice")
	}
	waiting := make(chan reply)
	go func() { waiting <- post(t.Context(), t, srv, "getUpdates", p{"timeout": 50}) }()
	if err := srv.AwaitPoll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	<-waiting
	if got := post(t.Context(), t, srv, "getMe", nil); got.broken == nil {
		t.Errorf("a closed server answered %s", got.body)
	}
	if err := srv.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}
