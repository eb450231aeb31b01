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

// FaultKind classifies errors of Telegram calls by how ductor reacts.
type FaultKind string

// Kinds of fault. NoFault is the zero value.
const (
	NoFault      FaultKind = ""
	RateLimited  FaultKind = "rate-limited" // RetryAfter is the time to wait
	NotModified  FaultKind = "not-modified" // the edit changed nothing, which is a success
	MessageGone  FaultKind = "message-gone" // deleted, or too old to be edited
	TopicGone    FaultKind = "topic-gone"
	NoTopics     FaultKind = "no-topics" // the chat has no topics
	NoTopicRight FaultKind = "no-topic-right"
	ChatGone     FaultKind = "chat-gone"  // blocked, kicked, deleted, or no right to write
	ChatMoved    FaultKind = "chat-moved" // a group became the supergroup Fault.MovedTo
	TooLong      FaultKind = "too-long"
	BadRequest   FaultKind = "bad-request" // permanently rejected
	NoMethod     FaultKind = "no-method"   // the server is too old for the method
	Unauthorized FaultKind = "unauthorized"
	Conflict     FaultKind = "conflict" // another program polls, or a webhook is set
	ServerFault  FaultKind = "server"   // a problem at Telegram
	NotSent      FaultKind = "not-sent" // the request was not sent, so a retry is safe
	UnknownFault FaultKind = "unknown"  // the request was sent but not answered, so it may have had an effect
	Cancelled    FaultKind = "cancelled"
	OtherFault   FaultKind = "other" // the error did not come from a Client
)

// Fault is a classified error. Description is Telegram's; it is empty if Telegram did not answer.
type Fault struct {
	Kind        FaultKind
	RetryAfter  time.Duration
	Code        int // Telegram's error code or the HTTP status; 0 if Telegram did not answer
	Description string
	MovedTo     int64 // the new id of the chat for ChatMoved; otherwise 0
}

// CallError is the error of a failed call. Its text never contains the token.
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

// FaultOf classifies err. It returns NoFault for nil, Cancelled for a bare context error, and OtherFault for an error
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

// reply is the envelope of every response of the Bot API.
type reply struct {
	OK          bool   `json:"ok"`
	Description string `json:"description"`
	ErrorCode   int    `json:"error_code"`
	Parameters  struct {
		RetryAfter      int   `json:"retry_after"`
		MigrateToChatID int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// classifyReply classifies a response that is not ok. status is the HTTP status, which is used if the error code is
// missing.
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

// classifyPage classifies a response from a gateway instead of the Bot API. The gateway may have forwarded the call
// before it failed, so the call may have had an effect.
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
		// Telegram answers "404 Not Found" both to a malformed token and to an unknown method.
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

// badRequests maps the texts of code 400, which Telegram uses for all rejections, to kinds of faults.
var badRequests = []struct {
	text string
	kind FaultKind
}{
	{"message is not modified", NotModified},
	{"chat_not_modified", NotModified}, // the message is already pinned
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

// NewCallError returns the error of a call of method with the fault f. cause may be nil. The error's text has at most
// 400 bytes, and contains none of scrub's secrets. The error wraps cause only if it is a context error.
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

// plainCause reduces an error to those errors that callers check, so that the chain contains no secrets.
func plainCause(err error) error {
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

// TroubleOf classifies an error of a Client for the outbox.
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
