package claude

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// A waiting message is taken back before an aborted turn is interrupted. If Claude gave it back, the process stays;
// otherwise the process is stopped, because it would start to work on the message.
func TestAbortTakesBackWhatWaits(t *testing.T) {
	const cutLine = `{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"S","terminal_reason":"aborted_tools"}`
	for name, tc := range map[string]struct {
		answer string // to the request to take the message back
		alive  bool
	}{
		"given back":         {`{"subtype":"success","request_id":"ID","response":{"cancelled":true}}`, true},
		"taken up meanwhile": {`{"subtype":"success","request_id":"ID","response":{"cancelled":false}}`, false},
		"unknown to it":      {`{"subtype":"error","request_id":"ID","error":"Unsupported control request subtype"}`, false},
		"about another":      {`{"subtype":"success","request_id":"take-back-other","response":{"cancelled":true}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, _ := fakeLive(t)
				ctx, abort := context.WithCancelCause(t.Context())
				heard := make(chan string)
				go func() {
					defer close(heard)
					f.print(lines(initLine, echoOf(<-f.heard))...)
					if err := s.(cli.Steerer).Steer(t.Context(), cli.Request{Prompt: "and this"}); err != nil {
						t.Error(err)
					}
					steer := <-f.heard
					abort(cli.ErrAborted)
					back, stop := <-f.heard, <-f.heard
					if !strings.Contains(back.Raw, `"message_uuid":"`+steer.UUID+`"`) || stop.Request.Subtype != "interrupt" {
						t.Errorf("heard %s, then %s", back.Raw, stop.Raw)
					}
					f.print(`{"type":"control_response","response":`+strings.ReplaceAll(tc.answer, "ID", takeBackID+steer.UUID)+`}`, cutLine)
				}()
				r, _ := clitest.Play(ctx, s, cli.Request{Prompt: "hi"})
				<-heard
				if !r.Aborted || s.Info().Alive != tc.alive {
					t.Errorf("aborted %v, alive %v", r.Aborted, s.Info().Alive)
				}
			})
		})
	}
}

// A turn may end because of a message before its sender learns that it was written.
func TestWhatEndedTheTurnWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := make(chan error, 1)
		go func() {
			time.Sleep(noteWait / 2)
			written <- nil
		}()
		if err := lastWritten(written); err != nil {
			t.Errorf("written a little later: %v", err)
		}
		if err := lastWritten(written); !errors.Is(err, cli.ErrNoTurn) {
			t.Errorf("never written: %v", err)
		}
	})
}
