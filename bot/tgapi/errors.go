package tgapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"ductor/bot/outbox"
	"ductor/cli"
)

// FaultKind sorts what can go wrong with a call to Telegram by what is to be done about it.
type FaultKind string

// The kinds of fault. NoFault is the zero value.
const (
	NoFault      FaultKind = ""
	RateLimited  FaultKind = "rate-limited" // RetryAfter says how long to be silent
	NotModified  FaultKind = "not-modified" // the edit changed nothing: success
	MessageGone  FaultKind = "message-gone" // deleted, or too old to be edited
	TopicGone    FaultKind = "topic-gone"
	NoTopics     FaultKind = "no-topics" // the chat has none
	NoTopicRight FaultKind = "no-topic-right"
	ChatGone     FaultKind = "chat-gone"  // blocked, kicked, deleted, no right to write: nothing reaches this chat
	ChatMoved    FaultKind = "chat-moved" // a group became a supergroup, which Fault.MovedTo names
	TooLong      FaultKind = "too-long"
	BadRequest   FaultKind = "bad-request" // refused for good
	NoMethod     FaultKind = "no-method"   // the server is too old for it
	Unauthorized FaultKind = "unauthorized"
	Conflict     FaultKind = "conflict" // another poller, or a webhook
	ServerFault  FaultKind = "server"   // Telegram's own trouble
	NotSent      FaultKind = "not-sent" // the request never left: safe to try again
	UnknownFault FaultKind = "unknown"  // it left and no answer came: it may have happened
	Cancelled    FaultKind = "cancelled"
	OtherFault   FaultKind = "other" // not Telegram's: the error did not come from a Client
)

// Fault is a classified error. Description is Telegram's own, and empty where there was no answer.
type Fault struct {
	Kind        FaultKind
	RetryAfter  time.Duration
	Code        int // Telegram's error code or the HTTP status; 0 where there was no answer
	Description string
	MovedTo     int64 // the new id of the chat; 0 unless it is ChatMoved
}

// CallError is a failed call. Its text never holds the token.
type CallError struct {
	Method string
	Fault  Fault
	text   string
	cause  error
}

// Error says which method failed and why, in one line.
func (e *CallError) Error() string { return "telegram " + e.Method + ": " + e.text }

// Unwrap gives what lies beneath, for errors.Is with context errors.
func (e *CallError) Unwrap() error { return e.cause }

// FaultOf classifies err: NoFault for nil, Cancelled for a bare context error, OtherFault for anything
// that did not come from a Client.
func FaultOf(err error) Fault {
	var call *CallError
	switch {
	case err == nil:
		return Fault{}
	case errors.As(err, &call):
		return call.Fault
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Fault{Kind: Cancelled}
	}
	return Fault{Kind: OtherFault, Description: err.Error()}
}

// reply is the envelope of every answer of the Bot API.
type reply struct {
	OK          bool   `json:"ok"`
	Description string `json:"description"`
	ErrorCode   int    `json:"error_code"`
	Parameters  struct {
		RetryAfter      int   `json:"retry_after"`
		MigrateToChatID int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// classifyReply sorts an answer that was not ok. status is the HTTP status, which stands in for a missing
// error code.
func classifyReply(status int, r reply) Fault {
	code := r.ErrorCode
	if code == 0 {
		code = status
	}
	f := Fault{Code: code, Description: r.Description}
	f.Kind = kindOf(code, strings.ToLower(r.Description))
	if r.Parameters.MigrateToChatID != 0 {
		f.Kind, f.MovedTo = ChatMoved, r.Parameters.MigrateToChatID
	}
	if f.Kind == RateLimited {
		f.RetryAfter = max(time.Duration(r.Parameters.RetryAfter)*time.Second, time.Second)
	}
	return f
}

// classifyPage sorts an answer that does not come from the Bot API but from what stands before it. Such a
// gateway may have passed the call on before it gave up, so it is unknown whether it happened.
func classifyPage(status int) Fault {
	f := classifyReply(status, reply{Description: http.StatusText(status)})
	if f.Kind == ServerFault && status != http.StatusServiceUnavailable {
		f.Kind = UnknownFault
	}
	return f
}

func kindOf(code int, description string) FaultKind {
	switch {
	case code == http.StatusTooManyRequests:
		return RateLimited
	case code == http.StatusUnauthorized, code == http.StatusNotFound && description == "not found":
		// A malformed token is answered by "404 Not Found", as an unknown method is.
		return Unauthorized
	case code == http.StatusConflict:
		return Conflict
	case code == http.StatusForbidden:
		return ChatGone
	case code == http.StatusGatewayTimeout:
		return UnknownFault
	case code >= 500:
		return ServerFault
	case code == http.StatusRequestEntityTooLarge:
		return TooLong
	}
	for _, rule := range badRequests {
		if strings.Contains(description, rule.text) {
			return rule.kind
		}
	}
	return BadRequest
}

// badRequests are the texts that tell refusals apart; Telegram gives them all the code 400.
var badRequests = []struct {
	text string
	kind FaultKind
}{
	{"message is not modified", NotModified},
	{"chat_not_modified", NotModified}, // it is pinned already
	{"topic_not_modified", NotModified},
	{"message to edit not found", MessageGone},
	{"message can't be edited", MessageGone},
	{"message_id_invalid", MessageGone},
	{"message to delete not found", MessageGone},
	{"message can't be deleted", MessageGone},
	{"message thread not found", TopicGone},
	{"topic_deleted", TopicGone},
	{"topic_closed", TopicGone},
	{"topic_id_invalid", TopicGone},
	{"the chat is not a forum", NoTopics},
	{"not enough rights to create a topic", NoTopicRight},
	{"not enough rights to edit the topic", NoTopicRight},
	{"chat not found", ChatGone},
	{"user is deactivated", ChatGone},
	{"peer_id_invalid", ChatGone},
	{"chat_write_forbidden", ChatGone},
	{"have no rights to send a message", ChatGone},
	{"not enough rights to send text messages", ChatGone},
	{"group chat was upgraded", ChatGone},
	{"message is too long", TooLong},
	{"message_too_long", TooLong},
	{"text is too long", TooLong},
}

// NewCallError is the error of a call of method that f classifies; cause may be nil. Its text has at most 400 bytes and
// none of the secrets that scrub knows; of cause it keeps only context errors.
func NewCallError(method string, f Fault, cause error, scrub *Scrubber) *CallError {
	text := f.Description
	if text == "" && cause != nil {
		text = cause.Error()
	}
	if f.Kind == RateLimited {
		text = fmt.Sprintf("%s (retry after %s)", text, f.RetryAfter)
	}
	f.Description = scrub.String(f.Description)
	return &CallError{Method: method, Fault: f, text: cli.Shorten(scrub.String(text), 400), cause: plainCause(cause)}
}

// plainCause keeps of an error only what callers test for, so that no text with a secret hides in a chain.
func plainCause(err error) error {
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

// TroubleOf says what the error of a Client means for the next try of its call.
func TroubleOf(err error) outbox.Trouble {
	switch f := FaultOf(err); f.Kind {
	case RateLimited:
		return outbox.Trouble{Kind: outbox.Limited, After: f.RetryAfter}
	case ServerFault, NotSent:
		return outbox.Trouble{Kind: outbox.NotMade}
	case UnknownFault:
		return outbox.Trouble{Kind: outbox.Unclear}
	}
	return outbox.Trouble{}
}
