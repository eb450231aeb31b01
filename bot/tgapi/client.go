package tgapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	telegram "github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"ductor/bot/render"
	"ductor/orchestrator"
)

// ClientOptions configures a Client.
type ClientOptions struct {
	Token     string
	APIBase   string            // default: https://api.telegram.org
	Transport http.RoundTripper // default: NewTransport("")
	Timeout   time.Duration     // timeout of each request; default: 30 s
	Scrub     *Scrubber         // removes secrets from everything that is sent; default: only the bot token
}

// Client sends, edits and deletes messages. Each method makes one HTTP request. A Client does not observe rate limits
// and does not retry: this is the task of package outbox. Errors are of type *CallError and never contain the bot
// token. An edit that changes nothing succeeds. "Idempotent" in the comment of a method means that a repeated request
// has no further effect. A Client is safe for concurrent use.
type Client struct {
	api     *telegram.Bot
	timeout time.Duration
	scrub   *Scrubber
}

// NewClient returns a Client. It makes no request.
func NewClient(o ClientOptions) (*Client, error) {
	if o.Token == "" || strings.ContainsAny(o.Token, " \t\r\n/?#") {
		return nil, errors.New("the Telegram token is empty or malformed")
	}
	if o.APIBase == "" {
		o.APIBase = "https://api.telegram.org"
	}
	if u, err := url.Parse(o.APIBase); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the API base is not a URL such as https://api.telegram.org")
	}
	if o.Transport == nil {
		t, err := NewTransport("")
		if err != nil {
			return nil, err
		}
		o.Transport = t
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Scrub == nil {
		o.Scrub = NewScrubber(o.Token)
	}
	w := newWire(o.Transport)
	api, err := telegram.New(o.Token, telegram.WithSkipGetMe(), telegram.WithHTTPClient(0, w),
		telegram.WithServerURL(strings.TrimRight(o.APIBase, "/")),
		telegram.WithErrorsHandler(func(error) {}), // ignore errors from closing a response, which are harmless
	)
	if err != nil {
		return nil, errors.New("make the Telegram client: " + o.Scrub.String(err.Error()))
	}
	return &Client{api: api, timeout: o.Timeout, scrub: o.Scrub}, nil
}

// Scrubber returns the Scrubber that removes secrets from everything that the client sends.
func (c *Client) Scrubber() *Scrubber { return c.scrub }

// Edit replaces the text and the buttons of a message. If k is nil, the message gets no buttons. Idempotent.
func (c *Client) Edit(ctx context.Context, chat int64, message int, t render.Text, k Keyboard) error {
	t = c.scrub.Text(t)
	p := &telegram.EditMessageTextParams{
		ChatID: chat, MessageID: message,
		Text: t.Text, Entities: entities(t.Entities), LinkPreviewOptions: noPreview(), ReplyMarkup: markup(k),
	}
	return unchanged(call(ctx, c, "editMessageText", c.api.EditMessageText, p))
}

// EditKeyboard replaces the buttons of a message. If k is nil, it removes the buttons. Idempotent.
func (c *Client) EditKeyboard(ctx context.Context, chat int64, message int, k Keyboard) error {
	p := &telegram.EditMessageReplyMarkupParams{ChatID: chat, MessageID: message, ReplyMarkup: markup(k)}
	return unchanged(call(ctx, c, "editMessageReplyMarkup", c.api.EditMessageReplyMarkup, p))
}

// Delete deletes a message. It returns nil if the message does not exist. Idempotent.
func (c *Client) Delete(ctx context.Context, chat int64, message int) error {
	err := call(ctx, c, "deleteMessage", c.api.DeleteMessage, &telegram.DeleteMessageParams{
		ChatID: chat, MessageID: message,
	})
	if strings.Contains(FaultOf(err).Description, "message to delete not found") {
		return nil
	}
	return err
}

// Typing shows "typing…" in a chat for a few seconds. Idempotent.
func (c *Client) Typing(ctx context.Context, to orchestrator.ConversationID) error {
	return call(ctx, c, "sendChatAction", c.api.SendChatAction, &telegram.SendChatActionParams{
		// Unlike requests that send messages, this request needs a topic ID even for the General topic of a group.
		ChatID: to.Chat, MessageThreadID: to.Topic, Action: models.ChatActionTyping,
	})
}

// Draft shows text as the draft with the given ID, which must not be 0. A draft is a preview with a Stop button in a
// private chat. It disappears after 30 s, or when the bot sends a message. If the server does not support drafts, the
// fault is NoMethod. Idempotent.
func (c *Client) Draft(ctx context.Context, to orchestrator.ConversationID, id int64, t render.Text) error {
	t = c.scrub.Text(t)
	return missing(call(ctx, c, "sendMessageDraft", c.api.SendMessageDraft, &telegram.SendMessageDraftParams{
		ChatID: to.Chat, MessageThreadID: thread(to.Topic), DraftID: strconv.FormatInt(id, 10),
		Text: t.Text, Entities: entities(t.Entities), CanStop: true, KeepOnStop: true,
	}))
}

// React adds an emoji reaction to a message. If emoji is empty, it removes the reaction. Idempotent.
func (c *Client) React(ctx context.Context, chat int64, message int, emoji string) error {
	p := &telegram.SetMessageReactionParams{ChatID: chat, MessageID: message}
	if emoji != "" {
		p.Reaction = []models.ReactionType{{
			Type: models.ReactionTypeTypeEmoji, ReactionTypeEmoji: &models.ReactionTypeEmoji{Emoji: emoji},
		}}
	}
	return call(ctx, c, "setMessageReaction", c.api.SetMessageReaction, p)
}

// AnswerCallback ends the loading animation of a button that a user pressed, and shows a text, unless the text is
// empty. The text has at most 200 characters. Idempotent.
func (c *Client) AnswerCallback(ctx context.Context, query, text string) error {
	p := &telegram.AnswerCallbackQueryParams{CallbackQueryID: query, Text: c.scrub.String(text)}
	return call(ctx, c, "answerCallbackQuery", c.api.AnswerCallbackQuery, p)
}

// call makes a request with the default timeout.
func call[P, R any](ctx context.Context, c *Client, method string, do func(context.Context, *P) (R, error),
	p *P) error {
	_, err := send(ctx, c, method, do, p)
	return err
}

// send is like call, for requests that return a message. It returns the ID of the message.
func send[P, R any](ctx context.Context, c *Client, method string, do func(context.Context, *P) (R, error),
	p *P) (message int, err error) {
	return sendWithin(ctx, c, c.timeout, method, do, p)
}

// sendWithin is like send, with another timeout.
func sendWithin[P, R any](ctx context.Context, c *Client, limit time.Duration, method string,
	do func(context.Context, *P) (R, error), p *P) (message int, err error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, t := withTrace(ctx)
	if _, err := do(ctx, p); err != nil {
		return 0, NewCallError(method, faultOfCall(caller, t), err, c.scrub)
	}
	return t.message, nil
}

// faultOfCall returns the fault of a request that failed. The parameter caller is the context of the caller, which does
// not contain the timeout of the request.
func faultOfCall(caller context.Context, t *trace) Fault {
	switch {
	case !t.tried:
		return Fault{Kind: BadRequest} // the library made no request
	case t.fault.Kind != NoFault:
		return t.fault
	case t.left():
		return Fault{Kind: UnknownFault}
	case caller.Err() != nil:
		return Fault{Kind: Cancelled}
	}
	return Fault{Kind: NotSent}
}

func unchanged(err error) error {
	if FaultOf(err).Kind == NotModified {
		return nil
	}
	return err
}

// replyTo returns the parameters for a reply to a message, or nil if message is 0. If the message to which it replies
// was deleted, Telegram sends the reply as an ordinary message.
func replyTo(message int) *models.ReplyParameters {
	if message == 0 {
		return nil
	}
	return &models.ReplyParameters{MessageID: message, AllowSendingWithoutReply: true}
}

// thread returns the topic ID for a request that sends a message. Telegram requires 0 for the General topic of a group,
// although the ID of this topic is 1.
func thread(topic int) int {
	if topic == 1 {
		return 0
	}
	return topic
}

func noPreview() *models.LinkPreviewOptions {
	return &models.LinkPreviewOptions{IsDisabled: telegram.True()}
}

func entities(in []render.Entity) []models.MessageEntity {
	if len(in) == 0 {
		return nil
	}
	out := make([]models.MessageEntity, len(in))
	for i, e := range in {
		out[i] = models.MessageEntity{
			Type: models.MessageEntityType(e.Kind), Offset: e.Offset, Length: e.Length,
			URL: e.URL, Language: e.Language,
		}
	}
	return out
}

// markup returns the buttons in the library's format. If there are no buttons, markup must return an untyped nil,
// because the library would send a typed nil as "null", which Telegram rejects.
func markup(k Keyboard) models.ReplyMarkup {
	if len(k) == 0 {
		return nil
	}
	k = k.fitted()
	rows := make([][]models.InlineKeyboardButton, len(k))
	for i, row := range k {
		for _, b := range row {
			rows[i] = append(rows[i], models.InlineKeyboardButton{Text: b.Text, CallbackData: b.Data})
		}
	}
	return &models.InlineKeyboardMarkup{InlineKeyboard: rows}
}

// Pin pins a message without notifying users. Idempotent, except that each request adds a service message to the chat.
func (c *Client) Pin(ctx context.Context, chat int64, message int) error {
	return unchanged(call(ctx, c, "pinChatMessage", c.api.PinChatMessage, &telegram.PinChatMessageParams{
		ChatID: chat, MessageID: message, DisableNotification: true,
	}))
}

// Unpin unpins a message. Idempotent.
func (c *Client) Unpin(ctx context.Context, chat int64, message int) error {
	return call(ctx, c, "unpinChatMessage", c.api.UnpinChatMessage, &telegram.UnpinChatMessageParams{
		ChatID: chat, MessageID: message,
	})
}
