package conversation_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
)

// The audit has tools that ran without asking. Tools that the agent asked for appear only as asked. A tool that was
// running when the turn was aborted is not missing.
func TestToolsThatRanUnaskedAreAudited(t *testing.T) {
	h := open(t)
	hangs := make(chan struct{})
	begin := func(emit func(cli.Event), id cli.ToolID, name, title string) {
		emit(cli.ToolStarted{ID: id, Name: name, Title: title})
	}
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if strings.HasSuffix(req.Prompt, "hang") {
			begin(emit, "4", "Bash", "sleep")
			close(hangs)
			<-ctx.Done()
			emit(cli.ToolEnded{ID: "4", Err: "interrupted"})
			return cli.Cut(ctx, who)
		}
		begin(emit, "1", "Read", "notes.md")
		emit(cli.ToolEnded{ID: "1"})
		begin(emit, "2", "Bash", "touch x")
		asked := bash("a", "touch x")
		asked.Started = "2"
		h.agent.request(ctx, emit, asked)
		emit(cli.ToolEnded{ID: "2"})
		begin(emit, "3", "Bash", "ls")
		emit(cli.ToolEnded{ID: "3", Err: "no such file"})
		return cli.Result{Text: "done"}
	}
	must(t, h.SetPermission(t.Context(), here, cli.AcceptEdits, owner))
	h.submit(t, here, "go")
	h.decide(t, h.awaitApproval(t, "touch x"), allow())
	h.await(t, "done go")
	h.submit(t, here, "hang")
	<-hangs
	if _, err := h.Abort(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	var got []string
	h.eventually(t, "the audit", func() bool {
		log, err := h.Audit(t.Context(), time.Time{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, e := range slices.Backward(log) {
			got = append(got, fmt.Sprintf("%s by %d: %s %s, %s %s", e.What, e.By, e.Tool, e.Title, e.Rule, e.Reason))
		}
		return len(got) == 5
	})
	want := []string{
		"mode by 7:  accept-edits,  ", "ran by 0: Read notes.md, accept-edits ", "allowed by 7: Bash touch x,  ",
		"ran by 0: Bash ls, accept-edits no such file", "ran by 0: Bash sleep, accept-edits interrupted",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit is %q", got)
	}
}
