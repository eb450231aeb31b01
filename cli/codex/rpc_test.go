package codex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ductor/cli"
)

// peer is the far end of a conn: what it was sent, and what it told.
type peer struct {
	*conn
	sent  []message
	told  []string
	asked []string
}

func newPeer() *peer {
	p := &peer{}
	p.conn = newConn("me", func(line []byte) error {
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		p.sent = append(p.sent, m)
		return nil
	}, func(m message) { p.told = append(p.told, m.Method) }, func(m message) bool {
		p.asked = append(p.asked, m.Method)
		return m.Method == "known"
	})
	return p
}

func TestAnswersFindTheirQuestions(t *testing.T) {
	p := newPeer()
	answers := map[string]string{}
	for _, name := range []string{"a", "b"} {
		if err := p.expect(name, func(m message) { answers[name] += string(m.Result) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		`{"id":"b","result":1}`, `{"id":"a","result":2}`, // out of order
		`{"id":"a","result":3}`,                                                     // twice
		`{"id":"c","result":4}`, `{"id":7,"result":5}`, `{"id":{"x":1},"result":6}`, // of nobody
	} {
		if !p.take([]byte(line)) {
			t.Errorf("%s is taken for garbage", line)
		}
	}
	if answers["a"] != "2" || answers["b"] != "1" || len(p.sent)+len(p.told)+len(p.asked) != 0 {
		t.Errorf("answers %v, sent %v, told %v, asked %v", answers, p.sent, p.told, p.asked)
	}
}

func TestWhatIsNoMessageIsGarbage(t *testing.T) {
	p := newPeer()
	for _, line := range []string{``, `{"id":"a","resu`, `no json`, `[]`, `{}`, `null`, `7`, `{"id":null}`, "\xff\x00"} {
		if p.take([]byte(line)) {
			t.Errorf("%q is taken for a message", line)
		}
	}
}

func TestUnknownRequestsAreRefused(t *testing.T) {
	p := newPeer()
	for _, line := range []string{`{"id":1,"method":"known"}`, `{"id":"x","method":"unknown"}`, `{"method":"unknown"}`} {
		p.take([]byte(line))
	}
	if len(p.sent) != 1 || string(p.sent[0].ID) != `"x"` || p.sent[0].Error == nil || p.sent[0].Error.Code != methodNotFound {
		t.Errorf("sent %+v", p.sent)
	}
	if strings.Join(p.asked, " ") != "known unknown" || strings.Join(p.told, " ") != "unknown" {
		t.Errorf("asked %v, told %v", p.asked, p.told)
	}
}

func TestCallsEnd(t *testing.T) {
	p := newPeer()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cli.ErrAborted)
	if err := p.call(ctx, "never", nil, nil); !errors.Is(err, cli.ErrAborted) {
		t.Errorf("never answered: %v", err)
	}
	if len(p.pending) != 0 {
		t.Errorf("%d questions are kept that nobody waits for", len(p.pending))
	}
	p.conn.write = func([]byte) error { return errOutletFull }
	if err := p.call(t.Context(), "deaf", nil, nil); !errors.Is(err, errOutletFull) {
		t.Errorf("not sent: %v", err)
	}
	for range maxPending {
		if err := p.expect(p.name(), func(message) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.expect("one too many", nil); !errors.Is(err, errTooManyCalls) {
		t.Errorf("%v", err)
	}
	p.end(errHubClosed)
	if err := p.call(t.Context(), "gone", nil, nil); !errors.Is(err, errHubClosed) {
		t.Errorf("ended: %v", err)
	}
}

func TestAnAnswerOfAnotherShapeIsBadOutput(t *testing.T) {
	var list struct{ Data []string }
	err := read(message{Result: json.RawMessage(`{"data":7}`)}, "model/list", &list)
	if f := cli.AsFailure(Agent, err); f.Kind != cli.BadOutput {
		t.Errorf("%v", err)
	}
}

// FuzzConn feeds any lines: no panic, every request answered once or handed on, and what is written is JSON.
func FuzzConn(f *testing.F) {
	f.Add([]byte("{\"id\":\"a\",\"result\":1}\n{\"id\":1,\"method\":\"known\"}\n{\"id\":[],\"method\":\"x\"}\n{\"method\":\"m\",\"params\":{}}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := newPeer()
		answered := 0
		if err := p.expect("a", func(message) { answered++ }); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(raw) {
			p.take(bytes.TrimSpace(line))
		}
		if answered > 1 {
			t.Errorf("a question was answered %d times", answered)
		}
		if len(p.sent) > len(p.asked) {
			t.Errorf("%d answers to %d requests", len(p.sent), len(p.asked))
		}
	})
}
