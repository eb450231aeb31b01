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

// FaultKind classifies the errors of requests by how ductor reacts to them.
type FaultKind string

// Values of FaultKind. The zero value is NoFault.
const (
	NoFault      FaultKind = ""
	RateLimited  FaultKind = "rate-limited" // too many requests; try again after RetryAfter
	NotModified  FaultKind = "not-modified" // an edit changed nothing; this counts as success
	MessageGone  FaultKind = "message-gone" // the message was deleted, or is too old to be edited
	TopicGone    FaultKind = "topic-gone"
	NoTopics     FaultKind = "no-topics" // the chat has no topics
	NoTopicRight FaultKind = "no-topic-right"
	ChatGone     FaultKind = "chat-gone"  // the bot may not write to the chat, or the chat does not exist
	ChatMoved    FaultKind = "chat-moved" // the group became a supergroup with the ID MovedTo
	TooLong      FaultKind = "too-long"
	BadRequest   FaultKind = "bad-request" // Telegram rejected the request; a retry would not help
	NoMethod     FaultKind = "no-method"   // the server does not know the method
	Unauthorized FaultKind = "unauthorized"
	Conflict     FaultKind = "conflict" // another program polls with the same bot token, or a webhook is set
	ServerFault  FaultKind = "server"   // an error of the server
	NotSent      FaultKind = "not-sent" // the request did not reach the server, so a retry is safe
	UnknownFault FaultKind = "unknown"  // there was no response, so the request may have had an effect
	Cancelled    FaultKind = "cancelled"
	OtherFault   FaultKind = "other" // the error does not come from a Client
)

// Fault describes why a request failed. Description comes from Telegram. It is empty if there was no response.
type Fault struct {
	Kind        FaultKind
	RetryAfter  time.Duration
	Code        int // error code or HTTP status; 0 if there was no response
	Description string
	MovedTo     int64 // only for ChatMoved: the new ID of the chat
}

// CallError is the error of a request. Its text never contains the bot token.
type CallError struct {
	Method string
	Fault  Fault
	text   string
	cause  error
}

// Error implements error.
func (e *CallError) Error() string { return "telegram " + e.Method + ": " + e.text }

// Unwrap returns a context error, or nil.
func (e *CallError) Unwrap() error { return e.cause }

// FaultOf returns the fault of an error. The fault of nil is NoFault. For an error that does not come from a Client,
// FaultOf returns Cancelled if it is a context error, and otherwise OtherFault.
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

// reply is the common part of all responses of the Bot API.
type reply struct {
	OK          bool   `json:"ok"`
	Description string `json:"description"`
	ErrorCode   int    `json:"error_code"`
	Parameters  struct {
		RetryAfter      int   `json:"retry_after"`
		MigrateToChatID int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// classifyReply returns the fault for an error response of the Bot API. It uses the HTTP status if the response has no
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

// classifyPage returns the fault for a response that comes from a gateway between ductor and the Bot API. The gateway
// may have forwarded the request, so the request may have had an effect.
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
		// Telegram returns "404 Not Found" for an invalid token, and also for an unknown method.
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

// badRequests contains the fault for each known description of the error code 400, which Telegram uses for most
// rejections.
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

// NewCallError returns the error of a request to method with the given fault. The error wraps cause only if cause is a
// context error. cause may be nil. The text of the error has at most 400 bytes, and scrub removes secrets from it.
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

// plainCause returns err if it is a context error. Otherwise it returns nil, because other errors could contain
// secrets.
func plainCause(err error) error {
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

// TroubleOf returns how the outbox must react to an error of a Client.
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
