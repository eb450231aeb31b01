package tgapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestRepliesAreSortedByExactRule(t *testing.T) {
	limited := reply{ErrorCode: 429, Description: "Too Many Requests: retry after 35"}
	limited.Parameters.RetryAfter = 35
	moved := reply{ErrorCode: 400, Description: "Bad Request: group chat was upgraded to a supergroup chat"}
	moved.Parameters.MigrateToChatID = -100
	say := func(code int, description string) reply { return reply{ErrorCode: code, Description: description} }
	for _, c := range []struct {
		in   reply
		want FaultKind
	}{
		{limited, RateLimited},
		{moved, ChatMoved},
		{say(400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"), NotModified},
		{say(400, "Bad Request: message to edit not found"), MessageGone},
		{say(400, "Bad Request: message can't be edited"), MessageGone},
		{say(400, "Bad Request: MESSAGE_ID_INVALID"), MessageGone},
		{say(400, "Bad Request: message thread not found"), TopicGone},
		{say(400, "Bad Request: TOPIC_DELETED"), TopicGone},
		{say(400, "Bad Request: TOPIC_CLOSED"), TopicGone},
		{say(400, "Bad Request: chat not found"), ChatGone},
		{say(403, "Forbidden: bot was blocked by the user"), ChatGone},
		{say(403, "Forbidden: bot was kicked from the supergroup chat"), ChatGone},
		{say(403, "Forbidden: user is deactivated"), ChatGone},
		{say(400, "Bad Request: not enough rights to send text messages to the chat"), ChatGone},
		{say(400, "Bad Request: message is too long"), TooLong},
		{say(400, "Bad Request: MESSAGE_TOO_LONG"), TooLong},
		{say(413, "Request Entity Too Large"), TooLong},
		{say(400, "Bad Request: can't parse entities: unsupported"), BadRequest},
		{say(400, "Bad Request: query is too old and response timeout expired or query ID is invalid"), BadRequest},
		{say(400, "Bad Request: REACTION_INVALID"), BadRequest},
		{say(401, "Unauthorized"), Unauthorized},
		{say(404, "Not Found"), Unauthorized},
		{say(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"), Conflict},
		{say(500, "Internal Server Error"), ServerFault},
		{say(502, "Bad Gateway"), ServerFault},
		{say(504, "Gateway Timeout"), UnknownFault},
	} {
		f := classifyReply(400, c.in)
		if f.Kind != c.want {
			t.Errorf("%d %q is %q, want %q", c.in.ErrorCode, c.in.Description, f.Kind, c.want)
		}
		if c.want == RateLimited && f.RetryAfter != 35*time.Second {
			t.Errorf("retry after %s", f.RetryAfter)
		}
	}
}

// A gateway's page does not show whether the call was forwarded.
func TestPagesAreSorted(t *testing.T) {
	for status, want := range map[int]FaultKind{
		500: UnknownFault, 502: UnknownFault, 503: ServerFault, 504: UnknownFault, 429: RateLimited, 413: TooLong, 403: ChatGone,
	} {
		if got := classifyPage(status).Kind; got != want {
			t.Errorf("a page with status %d is %q, want %q", status, got, want)
		}
	}
}

func TestFaultOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want FaultKind
	}{
		{nil, NoFault},
		{context.Canceled, Cancelled},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), Cancelled},
		{errors.New("disk full"), OtherFault},
		{fmt.Errorf("show: %w", errors.Join(NewCallError("test", Fault{Kind: TopicGone}, nil, nil), errors.New("and more"))), TopicGone},
	} {
		if got := FaultOf(c.err).Kind; got != c.want {
			t.Errorf("%v is %q, want %q", c.err, got, c.want)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(400, "Bad Request: chat not found", 0)
	f.Add(429, "", -5)
	f.Fuzz(func(t *testing.T, code int, description string, after int) {
		r := reply{ErrorCode: code, Description: description}
		r.Parameters.RetryAfter = after
		got := classifyReply(code, r)
		if got.Kind == NoFault {
			t.Errorf("%d %q is no fault", code, description)
		}
		if got.Kind == RateLimited && got.RetryAfter < time.Second {
			t.Errorf("retry after %s", got.RetryAfter)
		}
	})
}
