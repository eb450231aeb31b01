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

// FaultKind classifies the errors of Telegram calls by the reaction to them.
type FaultKind string

// Kinds of fault. NoFault is the zero value.
const (
	NoFault      FaultKind = ""
	RateLimited  FaultKind = "rate-limited" // RetryAfter is the time to wait
	NotModified  FaultKind = "not-modified" // the edit changed nothing: a success
	MessageGone  FaultKind = "message-gone" // deleted, or too old to be edited
	TopicGone    FaultKind = "topic-gone"
	NoTopics     FaultKind = "no-topics" // the chat has no topics
	NoTopicRight FaultKind = "no-topic-right"
	ChatGone     FaultKind = "chat-gone"  // blocked, kicked, deleted, or no right to write
	ChatMoved    FaultKind = "chat-moved" // a group became the supergroup Fault.MovedTo
	TooLong      FaultKind = "too-long"
	BadRequest   FaultKind = "bad-request" // rejected for good
	NoMethod     FaultKind = "no-method"   // the server is too old for the method
	Unauthorized FaultKind = "unauthorized"
	Conflict     FaultKind = "conflict" // another poller, or a webhook
	ServerFault  FaultKind = "server"   // trouble at Telegram
	NotSent      FaultKind = "not-sent" // the request was never sent: safe to try again
	UnknownFault FaultKind = "unknown"  // the request was sent but not answered: it may have happened
	Cancelled    FaultKind = "cancelled"
	OtherFault   FaultKind = "other" // the error did not come from a Client
)

// Fault is a classified error. Description is Telegram's own, and empty without an answer.
type Fault struct {
	Kind        FaultKind
	RetryAfter  time.Duration
	Code        int // Telegram's error code or the HTTP status; 0 without an answer
	Description string
	MovedTo     int64 // the new id of the chat for ChatMoved; otherwise 0
}

// CallError is a failed call. Its text never contains the token.
type CallError struct {
	Method string
	Fault  Fault
	text   string
	cause  error
}

// Error returns the failed method and the reason, in one line.
func (e *CallError) Error() string { return "telegram " + e.Method + ": " + e.text }

// Unwrap returns the cause, for errors.Is with context errors.
func (e *CallError) Unwrap() error { return e.cause }

// FaultOf classifies err. It returns NoFault for nil, Cancelled for a bare context error, and OtherFault for any error
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

// reply is the envelope of every Bot API answer.
type reply struct {
	OK          bool   `json:"ok"`
	Description string `json:"description"`
	ErrorCode   int    `json:"error_code"`
	Parameters  struct {
		RetryAfter      int   `json:"retry_after"`
		MigrateToChatID int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// classifyReply classifies an answer that was not ok. status is the HTTP status, which replaces a missing error code.
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

// classifyPage classifies an answer that comes from a gateway and not from the Bot API. A gateway may have forwarded
// the call before it gave up, so it is unknown whether the call happened.
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
		// Telegram answers "404 Not Found" to a malformed token, like to an unknown method.
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

// badRequests has the texts that distinguish refusals. Telegram uses the code 400 for all of them.
var badRequests = []struct {
	text string
	kind FaultKind
}{
	{"message is not modified", NotModified},
	{"chat_not_modified", NotModified}, // already pinned
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

// NewCallError returns the error of a call of method that f classifies. cause may be nil. Its text has at most 400
// bytes and none of the secrets that scrub knows. From cause it preserves only context errors.
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

// plainCause reduces an error to the errors that callers test for, so that no text with a secret stays in the chain.
func plainCause(err error) error {
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

// TroubleOf classifies the error of a Client for the outbox.
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
