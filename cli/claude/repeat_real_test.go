package claude

import (
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

// After a restart ductor may send lines a second time, without effect: the prompt, whether Claude is still busy with it
// or done, and the answer to its question.
func TestRealRepeatedLines(t *testing.T) {
	realagent.LongOnly(t)
	var background []cli.BackgroundResult
	p, c, api := real(t, func(o *Options) {
		o.Background = func(_ cli.Conversation, r cli.BackgroundResult) { background = append(background, r) }
	})
	req := cli.Request{Dir: c.Work, Attended: true, Turn: "T1", Prompt: `windmill [[ask cmd="echo x >>made.txt; sleep 0.3"]][[text "Done."]]`}
	s := clitest.Open(t, p, cli.Live, req)
	k := begin(t, s, req)
	asked := until[cli.ApprovalAsked](k)
	turn := s.(*live).running()
	turn.send(turn.open.prompt)
	decide(t, s, asked.ID, cli.Decision{Allow: true})
	turn.send(denyLine(string(asked.ID), "no"))
	r := k.end()
	if r.Text != "Done." || r.Err != nil || len(r.Denials) != 0 {
		t.Errorf("answered %+v", r)
	}
	turn.send(turn.open.prompt)
	time.Sleep(200 * time.Millisecond) // time for output that must not come
	before := len(api.Prompts())
	req.Turn, req.Resume, req.Prompt = "T2", r.AgentSessionID, `[[start]][[text "next"]]`
	if r = begin(t, s, req).end(); r.Text != "next" || len(api.Prompts()) != before+1 {
		t.Errorf("then %+v, asked %d times", r, len(api.Prompts())-before)
	}
	if n := strings.Count(lastAsked(api), "windmill"); n != 1 || len(background) > 0 {
		t.Errorf("the model was asked %d times, in the background came %+v", n, background)
	}
}
