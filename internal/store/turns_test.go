package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

func TestTurnLife(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "s1", chatA, noon)
	turn := newTurn("t1", 1, 2)
	turn.Wants = orchestrator.Wants{Own: "job", Agent: "claude", Model: "m", Effort: "low", Dir: "/src",
		Sandbox: "docker", Timeout: time.Minute, Silence: "OK",
		Purpose: orchestrator.Purpose{Task: cli.TaskCommand}}
	turn.Prompt.Rights = orchestrator.Rights{Of: orchestrator.RightsOfJob, Mode: cli.Plan,
		Rules: []string{"Bash(git status *)"}, Tools: cli.ToolList{Only: []string{"Read"}, Denied: []string{"web"}}}
	turn.Prompt.Attachments = []orchestrator.Attachment{{Path: "/up/a.png", Name: "a \"b\".png", MIME: "image/png",
		Image: true}}
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 1, Raw: []byte("{}")},
		{ID: 2, Raw: []byte("{}")}, {ID: 3, Raw: []byte("{}")}}))

	must(t, db.EnqueueTurn(ctx, turn))
	same(t, "the stored turn", get[orchestrator.Turn](t)(db.Turn(ctx, "t1")), turn)
	left := get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 0, 10))
	same(t, "updates left to handle", left, []orchestrator.Update{{ID: 3, Raw: []byte("{}"), Received: noon}})

	turn.Prompt.Text, turn.Wants.Task = "hello, edited", cli.TaskPrompt
	if ok := get[bool](t)(db.UpdatePrompt(ctx, turn)); !ok {
		t.Error("a queued turn refused a new prompt")
	}
	turn.Session, turn.Agent, turn.Model, turn.Sandbox = "s1", "claude", "opus", "web"
	turn.Started = noon.Add(time.Second)
	turn.Bypass = noon.Add(time.Hour)
	if ok := get[bool](t)(db.StartTurn(ctx, turn, cli.Start{})); !ok {
		t.Error("a queued turn did not start")
	}
	turn.State = orchestrator.TurnRunning
	same(t, "the running turn", get[orchestrator.Turn](t)(db.Turn(ctx, "t1")), turn)

	turn.State, turn.Ended, turn.Entry.Number = orchestrator.TurnFailed, noon.Add(time.Minute), 1
	turn.Outcome = orchestrator.Outcome{
		State: orchestrator.TurnFailed, Text: "half an answer \x00 with \xff bytes", Agent: "claude", Model: "opus-5",
		Usage: cli.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5}, CostUSD: 0.25,
		Duration: 59*time.Second + 7, Denials: []cli.Denial{{Tool: "Bash", Title: "rm -rf /", Reason: "not allowed"}},
		Fallback: true, Failure: "It failed.", Recovery: orchestrator.Repeatable(),
	}
	must(t, db.FinishTurn(ctx, "t1", turn.Ended, turn.Outcome))
	same(t, "the ended turn", get[orchestrator.Turn](t)(db.Turn(ctx, "t1")), turn)

	must(t, db.MarkDelivered(ctx, "t1"))
	turn.Delivered = true
	same(t, "the delivered turn", get[orchestrator.Turn](t)(db.Turn(ctx, "t1")), turn)
}

func TestFinishTurnCountsInItsSession(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	s := newSession(t, db, "s1", chatA, noon)
	for _, id := range []cli.TurnID{"t1", "t2"} {
		turn := newTurn(id)
		turn.Session = "s1"
		o := done("ok")
		o.Usage, o.CostUSD = cli.Usage{Input: 10, Output: 5, Reasoning: 99}, 0.5
		runTurn(t, db, turn, o)
	}
	s.Totals.Messages, s.Totals.Tokens, s.Totals.CostUSD, s.Used, s.Newest = 2, 30, 1, noon.Add(time.Minute), 2
	same(t, "the session", get[orchestrator.Session](t)(db.Session(ctx, "s1")), s)

	if err := db.FinishTurn(ctx, "t1", noon, done("twice")); err == nil {
		t.Error("a turn ended twice")
	}
	same(t, "the session after a second end was refused", get[orchestrator.Session](t)(db.Session(ctx, "s1")), s)
}

// turnStates brings a turn "t" into a state.
var turnStates = map[string]func(*testing.T, *DB){
	"queued":  func(t *testing.T, db *DB) { must(t, db.EnqueueTurn(t.Context(), newTurn("t"))) },
	"running": func(t *testing.T, db *DB) { must(t, db.EnqueueTurn(t.Context(), newTurn("t"))); startTestTurn(t, db) },
	"done":    func(t *testing.T, db *DB) { runTurn(t, db, newTurn("t"), done("")) },
	"cancelled": func(t *testing.T, db *DB) {
		must(t, db.EnqueueTurn(t.Context(), newTurn("t")))
		get[bool](t)(db.CancelTurn(t.Context(), "t"))
	},
	"absent": func(*testing.T, *DB) {},
}

// turnSteps calls a method that changes the state of turn "t". It returns false if the method changed nothing.
var turnSteps = map[string]func(*testing.T, *DB) (bool, error){
	"UpdatePrompt": func(t *testing.T, db *DB) (bool, error) {
		return db.UpdatePrompt(t.Context(), newTurn("t"))
	},
	"StartTurn": func(t *testing.T, db *DB) (bool, error) {
		return db.StartTurn(t.Context(), newTurn("t"), cli.Start{})
	},
	"CancelTurn": func(t *testing.T, db *DB) (bool, error) { return db.CancelTurn(t.Context(), "t") },
	"FinishTurn": func(t *testing.T, db *DB) (bool, error) {
		err := db.FinishTurn(t.Context(), "t", noon, done("x"))
		return err == nil, err
	},
	"MarkDelivered": func(t *testing.T, db *DB) (bool, error) {
		err := db.MarkDelivered(t.Context(), "t")
		return err == nil, err
	},
}

// TestTurnStates tests in which states of a turn a method changes it.
func TestTurnStates(t *testing.T) {
	refused := errors.New("any error")
	for _, c := range []struct {
		step, state string
		ok          bool
		err         error
	}{
		{"UpdatePrompt", "queued", true, nil},
		{"UpdatePrompt", "running", false, nil},
		{"UpdatePrompt", "cancelled", false, nil},
		{"UpdatePrompt", "absent", false, nil},
		{"StartTurn", "queued", true, nil},
		{"StartTurn", "running", true, nil},
		{"StartTurn", "done", false, nil},
		{"StartTurn", "cancelled", false, nil},
		{"StartTurn", "absent", false, nil},
		{"CancelTurn", "queued", true, nil},
		{"CancelTurn", "running", false, nil},
		{"CancelTurn", "cancelled", false, nil},
		{"CancelTurn", "absent", false, nil},
		{"FinishTurn", "queued", false, refused},
		{"FinishTurn", "running", true, nil},
		{"FinishTurn", "done", false, refused},
		{"FinishTurn", "cancelled", false, refused},
		{"FinishTurn", "absent", false, orchestrator.ErrNoTurn},
		{"MarkDelivered", "queued", false, refused},
		{"MarkDelivered", "running", false, refused},
		{"MarkDelivered", "done", true, nil},
		{"MarkDelivered", "absent", false, orchestrator.ErrNoTurn},
	} {
		t.Run(c.step+" of a turn that is "+c.state, func(t *testing.T) {
			db := newDB(t)
			turnStates[c.state](t, db)
			before := snapshot(t, db)
			ok, err := turnSteps[c.step](t, db)
			if ok != c.ok {
				t.Errorf("got %v, want %v (%v)", ok, c.ok, err)
			}
			if (c.err == nil) != (err == nil) || c.err != nil && c.err != refused && !errors.Is(err, c.err) {
				t.Errorf("got error %v, want %v", err, c.err)
			}
			if !c.ok {
				same(t, "turns after a refused step", snapshot(t, db), before)
			}
		})
	}
}

func startTestTurn(t testing.TB, db *DB) {
	t.Helper()
	if !get[bool](t)(db.StartTurn(t.Context(), newTurn("t"), cli.Start{})) {
		t.Fatal("did not start")
	}
}

func snapshot(t testing.TB, db *DB) orchestrator.Turn {
	t.Helper()
	turn, err := db.Turn(t.Context(), "t")
	if err != nil && !errors.Is(err, orchestrator.ErrNoTurn) {
		t.Fatal(err)
	}
	return turn
}

func TestFinishTurnAcceptsOnlyFinalStates(t *testing.T) {
	for state, ok := range map[orchestrator.TurnState]bool{
		orchestrator.TurnDone: true, orchestrator.TurnFailed: true, orchestrator.TurnAborted: true,
		orchestrator.TurnInterrupted: true, orchestrator.TurnCancelled: false, orchestrator.TurnQueued: false,
		orchestrator.TurnRunning: false, "": false,
	} {
		db := newDB(t)
		must(t, db.EnqueueTurn(t.Context(), newTurn("t")))
		startTestTurn(t, db)
		err := db.FinishTurn(t.Context(), "t", noon, orchestrator.Outcome{State: state})
		if (err == nil) != ok {
			t.Errorf("ending in state %q: %v", state, err)
		}
	}
}

func TestEnqueueTurnIsAllOrNothing(t *testing.T) {
	for name, spoil := range map[string]func(*orchestrator.Turn){
		"an id that is taken":           func(turn *orchestrator.Turn) { turn.ID = "taken" },
		"a session that is not there":   func(turn *orchestrator.Turn) { turn.Session = "nowhere" },
		"a turn that was repeated once": func(turn *orchestrator.Turn) { turn.Again = "original" },
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx := newDB(t), t.Context()
			must(t, db.EnqueueTurn(ctx, newTurn("taken")))
			repeat := newTurn("repeat")
			repeat.Again = "original"
			must(t, db.EnqueueTurn(ctx, repeat))
			get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 8, Raw: []byte("{}")}}))

			turn := newTurn("new", 8)
			spoil(&turn)
			if err := db.EnqueueTurn(ctx, turn); err == nil {
				t.Fatal("it was queued")
			}
			if n := len(get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 0, 9))); n != 1 {
				t.Error("its update is marked handled although nothing was queued")
			}
			if n := len(get[[]orchestrator.Turn](t)(db.OpenTurns(ctx))); n != 2 {
				t.Errorf("%d turns are open, want the 2 of before", n)
			}
		})
	}
}

// A turn that repeats another one deletes the job that would repeat it later, unless that job has started a run. Runs
// that were skipped do not count. The turn of the job itself keeps the job.
func TestARepetitionReplacesItsLaterJob(t *testing.T) {
	later := orchestrator.LaterJob("original")
	for name, c := range map[string]struct {
		state orchestrator.JobRunState // of a run; empty for none
		of    orchestrator.JobID
		want  error
		left  int
	}{
		"it waits":          {"", "", nil, 0},
		"it was skipped":    {orchestrator.RunSkipped, "", nil, 0},
		"it is due":         {orchestrator.RunWaiting, "", orchestrator.ErrRepeated, 1},
		"it has run":        {orchestrator.RunDone, "", orchestrator.ErrRepeated, 1},
		"it starts":         {orchestrator.RunWaiting, later, nil, 1},
		"another job waits": {"", "other", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx := newDB(t), t.Context()
			must(t, db.SaveJob(ctx, newJob(later), noon, noon))
			must(t, db.SaveJob(ctx, newJob("other"), noon, noon))
			if c.state != "" {
				r := newRun(later, "r")
				r.State = c.state
				get[[]orchestrator.JobRun](t)(db.RecordRuns(ctx, later, []orchestrator.JobRun{r}, noon, noon))
			}
			turn := newTurn("new")
			turn.Again, turn.Wants.Job = "original", c.of
			if err := db.EnqueueTurn(ctx, turn); !errors.Is(err, c.want) {
				t.Errorf("it is queued with %v", err)
			}
			if n := len(get[[]orchestrator.JobStatus](t)(db.Jobs(ctx))) - 1; n != c.left {
				t.Errorf("%d jobs are left", n)
			}
			queued := len(get[[]orchestrator.Turn](t)(db.OpenTurns(ctx))) == 1
			if queued != (c.want == nil) {
				t.Errorf("it is queued: %v", queued)
			}
		})
	}
}

func TestErrorsForMissingRows(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	lost := newTurn("t1")
	lost.Session = "nowhere"
	again := newTurn("t2")
	again.Again = "t0"
	must(t, db.EnqueueTurn(ctx, again))
	must(t, db.EnqueueTurn(ctx, newTurn("t3")))
	again.ID = "t4"
	_, noTurn := db.Turn(ctx, "t9")
	lostStart := newTurn("t3")
	lostStart.Session = "nowhere"
	_, noStart := db.StartTurn(ctx, lostStart, cli.Start{})
	for name, c := range map[string]struct{ got, want error }{
		"a turn in no session":    {db.EnqueueTurn(ctx, lost), orchestrator.ErrNoSession},
		"a start in no session":   {noStart, orchestrator.ErrNoSession},
		"a second repetition":     {db.EnqueueTurn(ctx, again), orchestrator.ErrRepeated},
		"a turn that is not kept": {noTurn, orchestrator.ErrNoTurn},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}

func TestOpenTurns(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	for _, id := range []cli.TurnID{"waits", "runs", "leaves"} {
		turn := newTurn(id)
		turn.Queued = noon.Add(-time.Hour) // a clock that is set back must not reorder the queue
		must(t, db.EnqueueTurn(ctx, turn))
	}
	get[bool](t)(db.StartTurn(ctx, newTurn("runs"), cli.Start{}))
	get[bool](t)(db.CancelTurn(ctx, "leaves"))
	runTurn(t, db, newTurn("ended"), done("x"))
	runTurn(t, db, newTurn("shown"), done("x"))
	must(t, db.MarkDelivered(ctx, "shown"))
	runTurn(t, db, newTurn("stopped"), orchestrator.Outcome{State: orchestrator.TurnInterrupted})

	same(t, "open turns", ids(get[[]orchestrator.Turn](t)(db.OpenTurns(ctx))), []cli.TurnID{"waits", "runs",
		"ended", "stopped"})
}

func TestHistory(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "s1", chatA, noon)
	newSession(t, db, "s2", chatA, noon)
	for _, id := range []cli.TurnID{"1", "2", "3", "4"} {
		turn := newTurn(id)
		turn.Session = "s1"
		runTurn(t, db, turn, done("answer "+string(id)))
	}
	other := newTurn("other")
	other.Session = "s2"
	runTurn(t, db, other, done("x"))
	queued := newTurn("queued")
	queued.Session = "s1"
	must(t, db.EnqueueTurn(ctx, queued))
	cancelled := newTurn("cancelled")
	cancelled.Session = "s1"
	must(t, db.EnqueueTurn(ctx, cancelled))
	get[bool](t)(db.CancelTurn(ctx, "cancelled"))

	for limit, want := range map[int][]cli.TurnID{
		9: {"1", "2", "3", "4"}, 2: {"3", "4"}, 1: {"4"}, 0: nil, -1: nil,
	} {
		got := get[[]orchestrator.Turn](t)(db.History(ctx, "s1", limit))
		same(t, "history", ids(got), want)
	}
}

func ids(turns []orchestrator.Turn) []cli.TurnID {
	var all []cli.TurnID
	for _, t := range turns {
		all = append(all, t.ID)
	}
	return all
}

func TestAbortTurns(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "s1", chatA, noon)
	for i, id := range []cli.TurnID{"runs", "waits", "waits-too", "stays", "begins"} {
		turn := newTurn(id, int64(i+1))
		must(t, db.EnqueueTurn(ctx, turn))
	}
	turn := newTurn("runs", 1)
	turn.Session, turn.Started = "s1", noon
	if ok, err := db.StartTurn(ctx, turn, cli.Start{}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	must(t, db.AbortTurns(ctx, []cli.TurnID{"runs"},
		[]cli.TurnID{"waits", "waits-too", "no such turn"}, orchestrator.Handled{}))
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 99, Raw: []byte("/abort")}}))
	answer := orchestrator.Message{Key: "stop/99", Conversation: chatA, State: orchestrator.Pending,
		Content: []byte(`"Stopped."`)}
	must(t, db.AbortTurns(ctx, []cli.TurnID{"begins"}, nil, orchestrator.Handled{Updates: []int64{99},
		Notices: []orchestrator.Message{answer}}))
	same(t, "updates that wait", len(get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 98, 1))), 0)
	same(t, "answers", len(get[[]orchestrator.Message](t)(db.OwedMessages(ctx))), 1)
	open, err := db.OpenTurns(ctx)
	must(t, err)
	var got []string
	for _, turn := range open {
		got = append(got, fmt.Sprintf("%s %s %v", turn.ID, turn.State, turn.Aborting))
	}
	same(t, "what is open", got, []string{"runs running true", "stays queued false", "begins queued true"})
}
