package claude

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

const backgroundResult = `{"type":"result","is_error":false,"session_id":"S","result":"bg","total_cost_usd":2,"origin":{"kind":"task-notification"}}`

func lines(parts ...any) (all []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			all = append(all, p)
		case []string:
			all = append(all, p...)
		}
	}
	return all
}

// echoOf returns the line with which Claude accepts a message.
func echoOf(h heard) string {
	return `{"type":"user","isReplay":true,"uuid":"` + h.UUID + `","message":{"role":"user","content":"x"}}`
}

func TestTurnThatBeginsByItselfBetweenTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, background := fakeLive(t)
		f.print(lines(initLine, textLines("A", "tests are green"), backgroundResult)...)
		synctest.Wait()
		if len(*background) != 1 || (*background)[0].Text != "tests are green" || (*background)[0].conversation != "7/0" {
			t.Fatalf("background %+v", *background)
		}
		go func() {
			h := <-f.heard
			f.print(lines(initLine, echoOf(h), textLines("B", "mine"),
				`{"type":"result","is_error":false,"session_id":"S","total_cost_usd":2.5}`)...)
		}()
		r, _ := clitest.Play(t.Context(), s, cli.Request{Prompt: "hi"})
		if r.Text != "mine" || r.Consumed.CostUSD != 0.5 {
			t.Errorf("answer %q for %g", r.Text, r.Consumed.CostUSD)
		}
	})
}

// A message sent in the middle of such a turn would become a part of it.
func TestMessageWaitsForATurnThatBeganByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, background := fakeLive(t)
		f.print(lines(initLine, textLines("A", "tests are "))...)
		synctest.Wait()
		go func() {
			time.Sleep(time.Second)
			select {
			case h := <-f.heard:
				t.Errorf("sent at once: %s", h.Raw)
			default:
			}
			f.print(`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"green"}}}`, backgroundResult)
			h := <-f.heard
			f.print(lines(initLine, echoOf(h), textLines("B", "mine"), doneLine)...)
		}()
		r, _ := clitest.Play(t.Context(), s, cli.Request{Prompt: "hi"})
		if r.Text != "mine" {
			t.Errorf("answer %q", r.Text)
		}
		if len(*background) != 1 || (*background)[0].Text != "tests are green" {
			t.Errorf("background %+v", *background)
		}
	})
}

func TestPermissionAskedBetweenTurnsIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, _ := fakeLive(t)
		f.print(initLine,
			`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"t"}}`)
		if h := <-f.heard; h.Type != "control_response" {
			t.Errorf("heard %s", h.Raw)
		}
		f.print(backgroundResult)
	})
}

// Claude answers an interrupt within milliseconds. A Claude that does not react is stopped at once.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, _ := fakeLive(t)
		ctx, cancel := contextWithAbort(t)
		var kinds []string
		go func() {
			h := <-f.heard
			f.print(lines(initLine, echoOf(h), textLines("A", "half"))...)
			time.Sleep(time.Second)
			cancel(cli.ErrAborted)
			kinds = append(kinds, (<-f.heard).Request.Subtype)
			f.print(`{"type":"control_response","response":{"subtype":"success","request_id":"interrupt"}}`,
				`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}`,
				`{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","total_cost_usd":1}`)
		}()
		r, _ := clitest.Play(ctx, s, cli.Request{Prompt: "hi"})
		if !r.Aborted || r.Err != nil || r.Text != "half" || r.Consumed.CostUSD != 1 {
			t.Errorf("got %+v", r)
		}
		if !slices.Equal(kinds, []string{"interrupt"}) {
			t.Errorf("heard %q", kinds)
		}
		if !s.Info().Alive {
			t.Error("a process that ended its turn was stopped")
		}
	})
}

func TestDeadlineKeepsWhatWasSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, _ := fakeLive(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			h := <-f.heard
			f.print(lines(initLine, echoOf(h), textLines("A", "half"))...)
		}()
		r, _ := clitest.Play(ctx, s, cli.Request{Prompt: "hi"})
		if r.Err == nil || r.Err.Kind != cli.TimedOut || r.Text != "half" || r.Duration < time.Minute {
			t.Errorf("got %+v", r)
		}
	})
}
