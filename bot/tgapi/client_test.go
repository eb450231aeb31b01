package tgapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/bot/render"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// line is a Client connected to a simulated Telegram over loopback.
type line struct {
	client *Client
	srv    *telegram.Server
	chat   *telegram.Chat
	to     orchestrator.ConversationID
}

func connect(t *testing.T) *line {
	t.Helper()
	srv := telegram.New(telegram.Options{})
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	transport, err := NewTransport("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := NewClient(ClientOptions{Token: srv.Token(), APIBase: srv.URL(), Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	chat := srv.Private(7, "Anna")
	chat.Person().Send(chat, "/start")
	return &line{client: c, srv: srv, chat: chat, to: orchestrator.ConversationID{Chat: 7}}
}

func (l *line) send(t *testing.T, m Message) int {
	t.Helper()
	m.To = l.to
	id, err := l.client.Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (l *line) message(t *testing.T, id int) telegram.Message {
	t.Helper()
	m, ok := l.chat.View().Message(telegram.MessageID(id))
	if !ok {
		t.Fatalf("message %d is not in the chat", id)
	}
	return m
}

func TestClientShowsWhatItIsGiven(t *testing.T) {
	l := connect(t)
	text := render.Markdown("A **bold** [link](https://example.org/x) and `code`\n\n```go\nx := 1\n```")
	id := l.send(t, Message{Text: text, Keyboard: Keyboard{{{Text: "Yes", Data: "y"}, {Text: "No", Data: "n"}}}, ReplyTo: 1, Silent: true})
	m := l.message(t, id)
	if m.Text != text.Text || !m.HasButton("No") || m.ReplyTo != 1 || !m.Silent {
		t.Errorf("the chat shows %+v", m)
	}
	var got []render.Entity
	for _, e := range m.Entities {
		got = append(got, render.Entity{Kind: render.Kind(e.Type), Offset: e.Offset, Length: e.Length, URL: e.URL, Language: e.Language})
	}
	if diff := cmp.Diff(text.Entities, got); diff != "" {
		t.Errorf("entities (-want +got):\n%s", diff)
	}
	ctx := t.Context()
	if err := l.client.Edit(ctx, 7, id, render.Plain("Other"), nil); err != nil {
		t.Error(err)
	}
	if m := l.message(t, id); m.Text != "Other" || m.HasButton("Yes") {
		t.Errorf("after the edit the chat shows %+v", m)
	}
	if err := l.client.Edit(ctx, 7, id, render.Plain("Other"), nil); err != nil {
		t.Errorf("an edit that changes nothing: %v", err)
	}
	if err := l.client.EditKeyboard(ctx, 7, id, Keyboard{{{Text: "Go", Data: "g"}}}); err != nil {
		t.Error(err)
	}
	if !l.message(t, id).HasButton("Go") {
		t.Error("the button is missing")
	}
	if err := l.client.EditKeyboard(ctx, 7, id, nil); err != nil {
		t.Error(err)
	}
	if err := l.client.EditKeyboard(ctx, 7, id, nil); err != nil {
		t.Errorf("taking buttons off twice: %v", err)
	}
	for _, emoji := range []string{"👀", ""} {
		if err := l.client.React(ctx, 7, 1, emoji); err != nil {
			t.Errorf("reaction %q: %v", emoji, err)
		}
	}
	if err := l.client.Typing(ctx, l.to); err != nil {
		t.Error(err)
	}
	if err := l.client.Delete(ctx, 7, id); err != nil {
		t.Error(err)
	}
	if err := l.client.Delete(ctx, 7, id); err != nil {
		t.Errorf("deleting twice: %v", err)
	}
	for _, c := range l.srv.Calls() {
		if _, ok := c.Params["parse_mode"]; ok {
			t.Errorf("%s had a parse mode", c.Method)
		}
		if p := c.Params["link_preview_options"]; strings.HasSuffix(c.Method, "essage") && c.Method[0] == 's' && !strings.Contains(p, "true") {
			t.Errorf("%s asked for a link preview: %q", c.Method, p)
		}
	}
}

func TestClientSendsDocuments(t *testing.T) {
	l := connect(t)
	id, err := l.client.SendFiles(t.Context(), Files{To: l.to, Files: []File{{Name: "a.txt", Content: strings.NewReader("hello")}}, Caption: render.Markdown("**A**")})
	if err != nil {
		t.Fatal(err)
	}
	if m := l.message(t, id); m.Media == nil || m.Text != "A" || len(m.Entities) != 1 {
		t.Errorf("the chat shows %+v", m)
	}
	_, err = l.client.SendFiles(t.Context(), Files{To: l.to, Files: []File{{Name: "b", Content: brokenReader{}}}})
	if k := FaultOf(err).Kind; k != BadRequest {
		t.Errorf("a file that cannot be read is %q, want %q, or it would be tried for ever", k, BadRequest)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestClientAnswersCallbacks(t *testing.T) {
	l := connect(t)
	id := l.send(t, Message{Text: render.Plain("?"), Keyboard: Keyboard{{{Text: "Yes", Data: "y"}}}})
	tap, err := l.chat.Person().Tap(l.message(t, id), "Yes")
	if err != nil {
		t.Fatal(err)
	}
	_ = tap
	err = l.client.AnswerCallback(t.Context(), "0", "Done")
	if f := FaultOf(err); f.Kind != BadRequest || !strings.Contains(f.Description, "query is too old") {
		t.Errorf("an unknown query: %v", err)
	}
}

// Every refusal is classified by Telegram's text.
func TestClientFaults(t *testing.T) {
	edit := func(ctx context.Context, l *line, id int, text string) error {
		return l.client.Edit(ctx, 7, id, render.Plain(text), nil)
	}
	say := func(ctx context.Context, l *line, text string) error {
		_, err := l.client.Send(ctx, Message{To: l.to, Text: render.Plain(text)})
		return err
	}
	for _, c := range []struct {
		name string
		want FaultKind
		do   func(ctx context.Context, l *line, id int) error
	}{
		{"message deleted", MessageGone, func(ctx context.Context, l *line, id int) error {
			return errors.Join(l.client.Delete(ctx, 7, id), edit(ctx, l, id, "x"))
		}},
		{"message of somebody else", MessageGone, func(ctx context.Context, l *line, _ int) error { return edit(ctx, l, 1, "x") }},
		{"send too long", TooLong, func(ctx context.Context, l *line, _ int) error { return say(ctx, l, strings.Repeat("x", 4097)) }},
		{"edit too long", TooLong, func(ctx context.Context, l *line, id int) error { return edit(ctx, l, id, strings.Repeat("x", 4097)) }},
		{"body too long", TooLong, func(ctx context.Context, l *line, _ int) error { return say(ctx, l, strings.Repeat("€", 12000)) }},
		{"empty", BadRequest, func(ctx context.Context, l *line, _ int) error { return say(ctx, l, " ") }},
		{"blocked", ChatGone, func(ctx context.Context, l *line, _ int) error { l.chat.Person().Block(); return say(ctx, l, "x") }},
		{"chat not found", ChatGone, func(ctx context.Context, l *line, _ int) error { l.to.Chat = 99; return say(ctx, l, "x") }},
		{"topic not found", TopicGone, func(ctx context.Context, l *line, _ int) error {
			f := l.srv.Forum(-100, "F")
			l.to = orchestrator.ConversationID{Chat: int64(f.ID()), Topic: 77}
			return say(ctx, l, "x")
		}},
		{"a topic in a chat without", NoTopics, func(ctx context.Context, l *line, _ int) error {
			_, err := l.client.OpenTopic(ctx, 7, "x")
			return err
		}},
		{"a topic without the right", NoTopicRight, func(ctx context.Context, l *line, _ int) error {
			f := l.srv.Forum(-100, "F")
			topic, err := l.client.OpenTopic(ctx, -100, "web")
			if err != nil || f.Topics()[telegram.TopicID(topic)].Name != "web" {
				return fmt.Errorf("topic %d of %v: %w", topic, f.Topics(), err)
			}
			f.ForbidTopics()
			_, err = l.client.OpenTopic(ctx, -100, "x")
			return err
		}},
		{"rate limit", RateLimited, func(ctx context.Context, l *line, _ int) error {
			l.srv.Inject(telegram.Fault{Kind: telegram.TooMany, RetryAfter: 9})
			return say(ctx, l, "x")
		}},
		{"500 page", UnknownFault, func(ctx context.Context, l *line, _ int) error {
			l.srv.Inject(telegram.Fault{Kind: telegram.ServerError})
			return say(ctx, l, "x")
		}},
		{"502 page, done", UnknownFault, func(ctx context.Context, l *line, _ int) error {
			l.srv.Inject(telegram.Fault{Kind: telegram.BadGatewayAfter})
			return say(ctx, l, "x")
		}},
		{"connection broken before", UnknownFault, func(ctx context.Context, l *line, _ int) error {
			l.srv.Inject(telegram.Fault{Kind: telegram.DropBefore})
			return say(ctx, l, "x")
		}},
		{"connection broken after", UnknownFault, func(ctx context.Context, l *line, _ int) error {
			l.srv.Inject(telegram.Fault{Kind: telegram.DropAfter})
			return say(ctx, l, "x")
		}},
		{"half an answer", UnknownFault, func(ctx context.Context, l *line, _ int) error {
			l.srv.Inject(telegram.Fault{Kind: telegram.BadJSON})
			return say(ctx, l, "x")
		}},
		{"caller gave up in mid-call", UnknownFault, func(ctx context.Context, l *line, _ int) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			arrived := func(telegram.Call) bool { cancel(); return true }
			l.srv.Inject(telegram.Fault{Kind: telegram.Hang, When: arrived})
			return say(ctx, l, "x")
		}},
		{"caller gave up before", Cancelled, func(ctx context.Context, l *line, _ int) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return say(ctx, l, "x")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := connect(t)
			err := c.do(t.Context(), l, l.send(t, Message{Text: render.Plain("first")}))
			f := FaultOf(err)
			if f.Kind != c.want {
				t.Errorf("%v is %q, want %q", err, f.Kind, c.want)
			}
			if c.want == RateLimited && f.RetryAfter != 9*time.Second {
				t.Errorf("retry after %s", f.RetryAfter)
			}
			if strings.Contains(err.Error(), l.srv.Token()) {
				t.Errorf("the token is in %q", err)
			}
		})
	}
}

// A request that gets no response ends after the timeout. Telegram may have received it.
func TestClientEndsARequestWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := telegram.New(telegram.Options{})
		defer func() {
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
		}()
		c, err := NewClient(ClientOptions{Token: srv.Token(), Transport: srv.Client().Transport})
		if err != nil {
			t.Fatal(err)
		}
		srv.Inject(telegram.Fault{Kind: telegram.Hang})
		start := time.Now()
		_, err = c.Send(t.Context(), Message{To: orchestrator.ConversationID{Chat: 7}, Text: render.Plain("x")})
		if took := time.Since(start); FaultOf(err).Kind != UnknownFault || took != 30*time.Second {
			t.Errorf("after %s: %v is %q", took, err, FaultOf(err).Kind)
		}
	})
}

func TestClientWrongToken(t *testing.T) {
	l := connect(t)
	c, err := NewClient(ClientOptions{Token: "1:wrong-token-of-nobody", APIBase: l.srv.URL(), Transport: http.DefaultTransport})
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	_, err = c.Send(t.Context(), Message{To: l.to, Text: render.Plain("x")})
	if FaultOf(err).Kind != Unauthorized {
		t.Errorf("%v is %q", err, FaultOf(err).Kind)
	}
}

// closedPort returns an address that refuses connections until the end of the test. Its socket is bound, so no other
// program gets the port, but nothing listens on it.
func closedPort(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}

// A request that was never sent may be tried again. The connection shows the difference, not the error's text.
func TestClientKnowsWhatNeverLeft(t *testing.T) {
	address := closedPort(t)
	for _, base := range []string{
		"http://" + address,  // no server listens here
		"http://256.0.0.1:1", // no such address
		"https://" + address, // no server listens here either
	} {
		transport, err := NewTransport("")
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewClient(ClientOptions{Token: "1:the-secret-token", APIBase: base, Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Send(t.Context(), Message{To: orchestrator.ConversationID{Chat: 1}, Text: render.Plain("x")})
		if FaultOf(err).Kind != NotSent || strings.Contains(fmt.Sprintf("%+v", err), "secret") {
			t.Errorf("%s: %v is %q", base, err, FaultOf(err).Kind)
		}
	}
}

func TestClientRefusesBadOptions(t *testing.T) {
	for _, o := range []ClientOptions{
		{},
		{Token: "a b"},
		{Token: "1:x/../y"},
		{Token: "1:abcdefgh", APIBase: "api.telegram.org"},
		{Token: "1:abcdefgh", APIBase: "ftp://x"},
	} {
		if _, err := NewClient(o); err == nil || strings.Contains(err.Error(), "abcdefgh") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, proxy := range []string{"nonsense", "ftp://x:1", "http://"} {
		if _, err := NewTransport(proxy); err == nil {
			t.Errorf("proxy %q was taken", proxy)
		}
	}
	if _, err := NewTransport("socks5://user:pass@127.0.0.1:1080"); err != nil {
		t.Error(err)
	}
}

func TestClientMasksSecretsInMessages(t *testing.T) {
	l := connect(t)
	text := render.Concat(render.Plain("it is "+l.srv.Token()+" "), render.Styled(render.Bold, "so"))
	m := l.message(t, l.send(t, Message{Text: text}))
	if strings.Contains(m.Text, "simulated") || !strings.HasSuffix(m.Text, "• so") {
		t.Errorf("the chat shows %q", m.Text)
	}
	if e := m.Entities; len(e) != 1 || e[0].Length != 2 || e[0].Offset+2 != render.Len(m.Text) {
		t.Errorf("entities %+v", e)
	}
}
