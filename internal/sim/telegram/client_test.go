package telegram_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"ductor/internal/sim/telegram"
)

// start returns a server on a port, and a context with a deadline for all waits.
func start(t *testing.T, opts telegram.Options) (*telegram.Server, context.Context) {
	t.Helper()
	srv := telegram.New(opts)
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return srv, ctx
}

// realClient returns go-telegram/bot as a client of the server.
func realClient(t *testing.T, srv *telegram.Server, opts ...bot.Option) *bot.Bot {
	t.Helper()
	b, err := bot.New(srv.Token(), append([]bot.Option{bot.WithServerURL(srv.URL())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func picture(t *testing.T) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewGray(image.Rect(0, 0, 8, 6))); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestRealClientSendsAndEditsOneMessage(t *testing.T) {
	srv, ctx := start(t, telegram.Options{})
	chat := srv.Private(7, "Ada")
	b := realClient(t, srv)
	sent, err := b.SendMessage(ctx, &bot.SendMessageParams{
		ChatID: chat.ID(), Text: "Working",
		Entities: []models.MessageEntity{{Type: models.MessageEntityTypeBold, Offset: 0, Length: 4}},
		ReplyMarkup: &models.InlineKeyboardMarkup{
			InlineKeyboard: [][]models.InlineKeyboardButton{{{Text: "Stop", CallbackData: "stop:1"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	edited, err := b.EditMessageText(ctx, &bot.EditMessageTextParams{
		ChatID: chat.ID(), MessageID: sent.ID, Text: "func main",
		Entities: []models.MessageEntity{{Type: models.MessageEntityTypePre, Offset: 0, Length: 9, Language: "go"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if edited.Text != "func main" || len(edited.Entities) != 1 || edited.Entities[0].Language != "go" ||
		edited.EditDate == 0 {
		t.Errorf("edited message came back as %+v", edited)
	}
	m, ok := chat.View().Last()
	if !ok || m.Text != "func main" || len(m.Keyboard) != 0 || len(m.Versions) != 2 {
		t.Errorf("the chat shows %+v", m)
	}
	if first := m.Versions[0]; first.Text != "Working" || first.Entities[0].Type != "bold" ||
		first.Keyboard[0][0].Data != "stop:1" {
		t.Errorf("the first state was %+v", first)
	}
}

func TestRealClientGetsMessagesAndAnswersButtons(t *testing.T) {
	srv, ctx := start(t, telegram.Options{})
	chat := srv.Private(7, "Ada")
	ada := chat.Person()
	b := realClient(t, srv, bot.WithDefaultHandler(func(ctx context.Context, b *bot.Bot, u *models.Update) {
		switch {
		case u.Message != nil:
			b.SendMessage(ctx, &bot.SendMessageParams{
				ChatID: u.Message.Chat.ID, Text: "you said " + u.Message.Text,
				ReplyParameters: &models.ReplyParameters{MessageID: u.Message.ID},
				ReplyMarkup: &models.InlineKeyboardMarkup{
					InlineKeyboard: [][]models.InlineKeyboardButton{{{Text: "Yes", CallbackData: "y"}}}},
			})
		case u.CallbackQuery != nil:
			b.AnswerCallbackQuery(ctx, &bot.AnswerCallbackQueryParams{
				CallbackQueryID: u.CallbackQuery.ID, Text: "got " + u.CallbackQuery.Data, ShowAlert: true,
			})
		}
	}))
	running, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() { defer close(stopped); b.Start(running) }()
	defer func() { stop(); <-stopped }()

	sent := ada.Send(chat, "/start now")
	m, err := chat.AwaitText(ctx, "you said /start now")
	if err != nil {
		t.Fatal(err)
	}
	if m.ReplyTo != sent.ID {
		t.Errorf("it replies to %d, not to %d", m.ReplyTo, sent.ID)
	}
	answer, err := ada.Press(ctx, m, "Yes")
	if err != nil || answer != (telegram.Answer{Text: "got y", Alert: true}) {
		t.Errorf("the button answered %+v, %v", answer, err)
	}
	if err := srv.AwaitAcknowledged(ctx); err != nil {
		t.Error(err)
	}
}

func TestRealClientUploadsAndDownloads(t *testing.T) {
	srv, ctx := start(t, telegram.Options{})
	chat := srv.Private(7, "Ada")
	b := realClient(t, srv)
	doc, err := b.SendDocument(ctx, &bot.SendDocumentParams{
		ChatID: chat.ID(), Caption: "the log", Document: &models.InputFileUpload{Filename: "run.LOG",
			Data: strings.NewReader("line 1\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.SendPhoto(ctx, &bot.SendPhotoParams{
		ChatID: chat.ID(), Photo: &models.InputFileUpload{Filename: "a.png", Data: bytes.NewReader(picture(t))},
	}); err != nil {
		t.Error(err)
	}
	file, err := b.GetFile(ctx, &bot.GetFileParams{FileID: doc.Document.FileID})
	if err != nil {
		t.Fatal(err)
	}
	if got := fetch(ctx, t, b.FileDownloadLink(file)); got != "line 1\n" {
		t.Errorf("downloaded %q", got)
	}
	album, err := b.SendMediaGroup(ctx, &bot.SendMediaGroupParams{ChatID: chat.ID(), Media: []models.InputMedia{
		&models.InputMediaDocument{Media: "attach://a.txt", MediaAttachment: strings.NewReader("a"),
			Caption: "two files"},
		&models.InputMediaDocument{Media: "attach://b.txt", MediaAttachment: strings.NewReader("b")},
	}})
	if err != nil || len(album) != 2 || album[0].MediaGroupID == "" || album[0].MediaGroupID != album[1].MediaGroupID {
		t.Errorf("album %+v, %v", album, err)
	}
	mine := chat.Person().SendDocument(chat, telegram.File{Name: "big.bin", Size: telegram.MaxDownload + 1})
	_, err = b.GetFile(ctx, &bot.GetFileParams{FileID: mine.Media.FileID})
	if err == nil || !strings.Contains(err.Error(), "Bad Request: file is too big") {
		t.Errorf("a file over the limit: %v", err)
	}
}

func fetch(ctx context.Context, t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s %v", resp.StatusCode, data, err)
	}
	return string(data)
}

func TestRealClientMakesEveryOtherCallDuctorNeeds(t *testing.T) {
	srv, ctx := start(t, telegram.Options{})
	chat := srv.Private(7, "Ada")
	forum := srv.Forum(-1000000000001, "Work")
	ada := srv.Person(7, "Ada")
	b := realClient(t, srv)
	said := ada.Send(chat, "hello")
	sent, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: chat.ID(), Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	thumb := models.ReactionType{Type: models.ReactionTypeTypeEmoji,
		ReactionTypeEmoji: &models.ReactionTypeEmoji{Emoji: "👀"}}
	topic, err := b.CreateForumTopic(ctx, &bot.CreateForumTopicParams{ChatID: forum.ID(), Name: "bugs"})
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() (bool, error){
		"typing": func() (bool, error) {
			return b.SendChatAction(ctx, &bot.SendChatActionParams{ChatID: forum.ID(), MessageThreadID: 1,
				Action: models.ChatActionTyping})
		},
		"reaction": func() (bool, error) {
			return b.SetMessageReaction(ctx, &bot.SetMessageReactionParams{
				ChatID: chat.ID(), MessageID: int(said.ID), Reaction: []models.ReactionType{thumb},
			})
		},
		"menu": func() (bool, error) {
			return b.SetMyCommands(ctx, &bot.SetMyCommandsParams{
				Commands: []models.BotCommand{{Command: "abort", Description: "Stop the turn"}},
				Scope:    &models.BotCommandScopeAllPrivateChats{},
			})
		},
		"draft": func() (bool, error) {
			return b.SendMessageDraft(ctx, &bot.SendMessageDraftParams{ChatID: chat.ID(), DraftID: "5",
				Text: "thinking"})
		},
		"keyboard": func() (bool, error) {
			_, err := b.EditMessageReplyMarkup(ctx, &bot.EditMessageReplyMarkupParams{
				ChatID: chat.ID(), MessageID: sent.ID,
				ReplyMarkup: &models.InlineKeyboardMarkup{
					InlineKeyboard: [][]models.InlineKeyboardButton{{{Text: "A", URL: "https://go.dev"}}}},
			})
			return err == nil, err
		},
		"pin": func() (bool, error) {
			return b.PinChatMessage(ctx, &bot.PinChatMessageParams{ChatID: chat.ID(), MessageID: sent.ID})
		},
		"webhook": func() (bool, error) {
			return b.DeleteWebhook(ctx, &bot.DeleteWebhookParams{DropPendingUpdates: true})
		},
		"topic": func() (bool, error) {
			m, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: forum.ID(),
				MessageThreadID: topic.MessageThreadID, Text: "in the topic"})
			return err == nil && m.IsTopicMessage && m.MessageThreadID == topic.MessageThreadID, err
		},
		"getChat": func() (bool, error) {
			c, err := b.GetChat(ctx, &bot.GetChatParams{ChatID: forum.ID()})
			return err == nil && c.IsForum, err
		},
		"getChatMember": func() (bool, error) {
			m, err := b.GetChatMember(ctx, &bot.GetChatMemberParams{ChatID: forum.ID(), UserID: int64(srv.BotID())})
			return err == nil && m.Type == models.ChatMemberTypeAdministrator, err
		},
		"copy": func() (bool, error) {
			id, err := b.CopyMessage(ctx, &bot.CopyMessageParams{ChatID: forum.ID(), FromChatID: chat.ID(),
				MessageID: sent.ID})
			return err == nil && id.ID > 0, err
		},
		"forward": func() (bool, error) {
			m, err := b.ForwardMessage(ctx, &bot.ForwardMessageParams{ChatID: forum.ID(), FromChatID: chat.ID(),
				MessageID: int(said.ID)})
			return err == nil && m.ForwardOrigin != nil, err
		},
		"delete": func() (bool, error) {
			return b.DeleteMessages(ctx, &bot.DeleteMessagesParams{ChatID: chat.ID(),
				MessageIDs: []int{int(said.ID), 999}})
		},
	}
	for _, name := range []string{"typing", "reaction", "menu", "draft", "keyboard", "pin", "webhook", "topic",
		"getChat",
		"getChatMember", "copy", "forward", "delete"} {
		if ok, err := calls[name](); !ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	if menu := srv.Menu("all_private_chats"); len(menu) != 1 || menu[0].Name != "abort" {
		t.Errorf("the menu is %v", menu)
	}
	if h := chat.History(); h[0].Reactions[0].Emoji != "👀" || !h[0].Deleted || !h[1].Pinned {
		t.Errorf("the chat was %+v", h)
	}
}

func TestRealClientUnderstandsTheErrors(t *testing.T) {
	srv, ctx := start(t, telegram.Options{Limits: telegram.StrictLimits()})
	chat := srv.Private(7, "Ada")
	b := realClient(t, srv)
	var limited *bot.TooManyRequestsError
	for i := range 4 {
		_, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: chat.ID(), Text: "again"})
		if (i < 3) != (err == nil) {
			t.Errorf("call %d: %v", i, err)
		}
		errors.As(err, &limited)
	}
	if limited == nil || limited.RetryAfter != 1 {
		t.Errorf("the fourth call in a second got %v", limited)
	}
	chat.Person().Block()
	srv.SetLimits(telegram.Limits{})
	if _, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: chat.ID(), Text: "hello?"}); !errors.Is(err,
		bot.ErrorForbidden) {
		t.Errorf("a blocked bot got %v", err)
	}
	if _, err := bot.New("1:wrong", bot.WithServerURL(srv.URL())); !errors.Is(err, bot.ErrorUnauthorized) {
		t.Errorf("a wrong token got %v", err)
	}
}

// post calls a method with JSON and decodes the envelope.
func post(ctx context.Context, t *testing.T, srv *telegram.Server, method string, params map[string]any) reply {
	t.Helper()
	data, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sim/bot"+srv.Token()+"/"+method,
		bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := srv.Client().Do(r)
	if err != nil {
		return reply{broken: err}
	}
	defer resp.Body.Close()
	return decode(t, resp)
}

type reply struct {
	OK     bool            `json:"ok"`
	Result json.RawMessage `json:"result"`
	Code   int             `json:"error_code"`
	Text   string          `json:"description"`
	Extra  struct {
		RetryAfter int             `json:"retry_after"`
		MigrateTo  telegram.ChatID `json:"migrate_to_chat_id"`
	} `json:"parameters"`
	status int
	body   string
	broken error
}

func decode(t *testing.T, resp *http.Response) reply {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	rep := reply{status: resp.StatusCode, body: string(body)}
	rep.broken = json.Unmarshal(body, &rep)
	return rep
}
