package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/orchestrator"
)

func newJob(id orchestrator.JobID) orchestrator.Job {
	j := orchestrator.Job{
		ID: id, Name: "morning", Kind: orchestrator.JobScheduled, Conversation: chatB, Person: 9, Prompt: "look",
		Created: noon,
		JobTiming: orchestrator.JobTiming{Schedule: "30 8 * * 1-5", Missed: orchestrator.MissedAll,
			Overlap: orchestrator.OverlapQueue},
		JobTurn: orchestrator.JobTurn{Session: orchestrator.SharedSession, Agent: "codex", Model: "m", Effort: "high",
			Dir: "/src", Sandbox: "docker", Timeout: time.Minute,
			Rights: orchestrator.Rights{Of: orchestrator.RightsOfJob, Mode: cli.Plan,
				Rules: []string{"Bash(git status *)"}, Tools: cli.ToolList{Only: []string{"Read"},
					Denied: []string{"web"}}}, Retries: 2, Backoff: time.Second, OKWord: "ok"},
	}
	j.Zone, j.QuietFrom, j.QuietTo, j.QuietPolicy = "Europe/Paris", "22:00", "07:00", orchestrator.QuietHold
	return j
}

func newRun(job orchestrator.JobID, id orchestrator.JobRunID) orchestrator.JobRun {
	return orchestrator.JobRun{
		ID: id, Job: job, Cause: orchestrator.CauseSchedule, Due: noon, StandsFor: 1, Prompt: "look", Attempt: 1,
		State: orchestrator.RunWaiting,
	}
}

func TestJobs(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	j, next := newJob("j1"), noon.Add(time.Hour)
	must(t, db.SaveJob(ctx, j, next, noon))
	must(t, db.SaveJob(ctx, newJob("j2"), time.Time{}, noon))
	same(t, "stored", get[orchestrator.JobStatus](t)(db.Job(ctx, "j1")), orchestrator.JobStatus{Job: j, Next: next,
		Planned: noon})

	runs := []orchestrator.JobRun{newRun("j1", "r1"), newRun("j1", "r2")}
	same(t, "fresh", get[[]orchestrator.JobRun](t)(db.RecordRuns(ctx, "j1", runs, next, noon)), runs)
	runs = append(runs, newRun("j1", "r3"))
	same(t, "fresh again", get[[]orchestrator.JobRun](t)(db.RecordRuns(ctx, "j1", runs, next, noon)), runs[2:])
	same(t, "open", get[[]orchestrator.JobRun](t)(db.OpenRuns(ctx)), runs)

	r := runs[0]
	r.State, r.Asked, r.Attempt, r.NotBefore = orchestrator.RunAsked, noon, 2, noon
	must(t, db.MoveRun(ctx, r))
	same(t, "moved", get[[]orchestrator.JobRun](t)(db.OpenRuns(ctx))[0], r)
	r.State, r.Ended, r.Result.Text, r.Result.Changed, r.Result.CostUSD = orchestrator.RunDone, next, "fine", true, 0.5
	result := orchestrator.JobResult{Digest: "digest", Shown: "t1", Same: 2}
	for range 2 { // the second time the run has already ended
		must(t, db.EndRun(ctx, r, result))
	}
	moved := r
	moved.State = orchestrator.RunWaiting
	must(t, db.MoveRun(ctx, moved))
	j.Prompt = "see"
	must(t, db.SaveJob(ctx, j, next, noon))
	same(t, "without its turn", get[orchestrator.JobStatus](t)(db.Job(ctx, "j1")).JobResult, orchestrator.JobResult{})
	must(t, db.EnqueueTurn(ctx, newTurn("t1")))
	want := orchestrator.JobStatus{Job: j, Next: next, Planned: noon,
		JobResult: result, Runs: 1, CostUSD: 0.5,
		Last: &r, Open: 2, Oldest: &runs[1]}
	same(t, "after a run", get[orchestrator.JobStatus](t)(db.Job(ctx, "j1")), want)
	same(t, "not told", len(get[[]orchestrator.JobRun](t)(db.OpenRuns(ctx))), 3)
	must(t, db.MarkNotified(ctx, "r1"))
	same(t, "told", len(get[[]orchestrator.JobRun](t)(db.OpenRuns(ctx))), 2)
	same(t, "newest", get[[]orchestrator.JobRun](t)(db.Runs(ctx, "j1", 1)), runs[2:])

	must(t, db.DeleteJob(ctx, "j1"))
	same(t, "left", len(get[[]orchestrator.JobStatus](t)(db.Jobs(ctx))), 1)
	same(t, "runs left", len(get[[]orchestrator.JobRun](t)(db.OpenRuns(ctx))), 0)
	_, err1 := db.Job(ctx, "j1")
	_, err2 := db.RecordRuns(ctx, "j1", runs, next, noon)
	_, err3 := db.RecordDelivery(ctx, webhook.Delivery{Run: runs[0]})
	for _, err := range []error{err1, err2, err3, db.DeleteJob(ctx, "j1")} {
		if !errors.Is(err, orchestrator.ErrNoJob) {
			t.Errorf("of a job that is gone: %v", err)
		}
	}
}

func TestHookDeliveries(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	must(t, db.SaveJob(ctx, newJob("h"), time.Time{}, noon))
	take := func(n int, signature, event string) webhook.Result {
		t.Helper()
		return get[webhook.Result](t)(db.RecordDelivery(ctx, webhook.Delivery{Signature: signature,
			Event: event, At: noon,
			Run: newRun("h", orchestrator.JobRunID(fmt.Sprint(n)))}))
	}
	same(t, "first", take(1, "s1", "e1"), webhook.Recorded)
	same(t, "to the letter", take(2, "s1", "e1"), webhook.Replayed)
	same(t, "the event", take(3, "s2", "e1"), webhook.Repeated)
	for n := 4; n < 3+orchestrator.MostQueuedRuns; n++ {
		same(t, "without any", take(n, "", ""), webhook.Recorded)
	}
	same(t, "too many", take(99, "s9", ""), webhook.QueueFull)
	same(t, "forgotten", get[int64](t)(db.PruneDeliveries(ctx, noon.Add(time.Second))), int64(2))
	same(t, "runs", len(get[[]orchestrator.JobRun](t)(db.OpenRuns(ctx))), orchestrator.MostQueuedRuns)
}

// TestDatasets tests that old and excess rows are deleted, that open ones stay, and that texts are deleted without
// their turns.
func TestDatasets(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	must(t, db.SaveJob(ctx, newJob("j"), time.Time{}, noon))
	for i, age := range []time.Duration{50 * time.Hour, 30 * time.Hour, 10 * time.Hour, 0} {
		r := newRun("j", orchestrator.JobRunID(fmt.Sprint(i)))
		_, err := db.RecordRuns(ctx, "j", []orchestrator.JobRun{r}, noon, noon)
		must(t, err)
		turn := newTurn(r.Turn())
		turn.Prompt.Text = strings.Repeat("x", 100)
		must(t, db.EnqueueTurn(ctx, turn))
		if age == 0 {
			continue // still running
		}
		ok, err := db.StartTurn(ctx, turn, cli.Start{})
		if must(t, err); !ok {
			t.Fatal("not started")
		}
		must(t, db.FinishTurn(ctx, turn.ID, noon.Add(-age), orchestrator.Outcome{State: orchestrator.TurnDone,
			Text: "answer"}))
		must(t, db.MarkDelivered(ctx, turn.ID))
		r.State, r.Ended, r.Result.Notified, r.Result.CostUSD = orchestrator.RunDone, noon.Add(-age), true, 1
		must(t, db.EndRun(ctx, r, orchestrator.JobResult{}))
	}
	for _, c := range []struct {
		what  string
		shelf heartbeat.Dataset
		cut   heartbeat.Cutoff
		gone  int64
		left  int64
	}{
		{"transcripts by age", db.Transcripts(), heartbeat.Cutoff{Before: noon.Add(-40 * time.Hour)}, 1, 2},
		{"transcripts by size", db.Transcripts(), heartbeat.Cutoff{Bytes: 110}, 1, 1},
		{"runs by age", db.JobRuns(), heartbeat.Cutoff{Before: noon.Add(-20 * time.Hour)}, 2, 1},
		{"runs: nothing more", db.JobRuns(), heartbeat.Cutoff{Before: noon.Add(-20 * time.Hour)}, 0, 1},
		{"audit: nothing there", db.AuditTrail(), heartbeat.Cutoff{Bytes: 1}, 0, 0},
	} {
		plan := get[heartbeat.TrimStats](t)(c.shelf.Plan(ctx, c.cut))
		did := get[heartbeat.TrimStats](t)(c.shelf.Trim(ctx, c.cut))
		same(t, c.what+": the plan and the result", did, plan)
		if did.Items != c.gone || did.LeftItems != c.left {
			t.Errorf("%s: %+v", c.what, did)
		}
	}
	first := get[orchestrator.Turn](t)(db.Turn(ctx, newRun("j", "0").Turn()))
	if first.State != orchestrator.TurnDone || first.Prompt.Text != "" || first.Outcome.Text != "" {
		t.Errorf("the turn is %+v", first)
	}
	if st := get[orchestrator.JobStatus](t)(db.Job(ctx, "j")); st.CostUSD != 3 || st.Runs != 3 || st.Open != 1 {
		t.Errorf("the job is %+v", st)
	}
	if open := get[orchestrator.Turn](t)(db.Turn(ctx, newRun("j", "3").Turn())); open.Prompt.Text == "" {
		t.Error("a waiting turn lost its text")
	}
}

// TestJobsKilledAtAnyTime repeatedly kills a process that works on runs in one database. A job's next time and the
// previous run are stored together, so are a delivery's signature and its run, and a job counts each ended run once.
func TestJobsKilledAtAnyTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ductor.db")
	for range 6 {
		acknowledged := runAndKill(t, "jobs:"+path, 2+rand.IntN(60))
		db := openAt(t, path)
		for _, line := range acknowledged {
			step, id, _ := strings.Cut(line, " ")
			query := map[string]string{
				"opening":  `SELECT ? = '0'`,
				"recorded": `SELECT count(*) FROM job_runs WHERE id = 'run ' || ?`,
				"asked":    `SELECT count(*) FROM job_runs WHERE id = 'run ' || ? AND state <> 'waiting'`,
				"ended":    `SELECT count(*) FROM job_runs WHERE id = 'run ' || ? AND state = 'done'`,
				"taken":    `SELECT count(*) FROM job_runs WHERE id = 'hook ' || ?`,
			}[step]
			if n := count(t, db, query, id); n != 1 {
				t.Errorf("%q was acknowledged, but %d rows show it", line, n)
			}
		}
		for what, query := range map[string]string{
			"jobs are due after a run that is not there, or at one that is": `SELECT count(*) FROM jobs
				WHERE id = 'j' AND
				next <> (SELECT count(*) FROM job_runs WHERE id LIKE 'run %')`,
			"jobs have miscounted": `SELECT count(*) FROM jobs WHERE id = 'j' AND (runs <> cost_usd OR
				runs <> (SELECT count(*) FROM job_runs WHERE state = 'done'))`,
			"deliveries are half there": `SELECT count(*) FROM hook_seen WHERE seal NOT IN (SELECT id FROM job_runs)`,
		} {
			if n := count(t, db, query); n != 0 {
				t.Errorf("%d %s", n, what)
			}
		}
		must(t, db.Close())
		if t.Failed() {
			return
		}
	}
}

// workOnJobs is the child of TestJobsKilledAtAnyTime.
func workOnJobs(path string) error {
	ctx := context.Background()
	fmt.Println("opening 0")
	db, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	if _, err := db.Job(ctx, "j"); errors.Is(err, orchestrator.ErrNoJob) {
		err = db.SaveJob(ctx, newJob("j"), time.Time{}, noon)
		if err != nil {
			return err
		}
	}
	st, err := db.Job(ctx, "j")
	if err != nil {
		return err
	}
	for n := st.Next.UnixMilli() + 1; ; n++ {
		if st.Next.IsZero() {
			n, st.Next = 1, noon
		}
		r := newRun("j", orchestrator.JobRunID(fmt.Sprint("run ", n)))
		hook := newRun("j", orchestrator.JobRunID(fmt.Sprint("hook ", n)))
		hook.State, hook.Result.Notified = orchestrator.RunSkipped, true
		asked, ended := r, r
		asked.State = orchestrator.RunAsked
		ended.State, ended.Result.CostUSD, ended.Result.Notified = orchestrator.RunDone, 1, true
		for _, s := range []killStep{
			{"recorded", func() error {
				_, err := db.RecordRuns(ctx, "j", []orchestrator.JobRun{r}, time.UnixMilli(n), noon)
				return err
			}},
			{"asked", func() error { return db.MoveRun(ctx, asked) }},
			{"ended", func() error { return db.EndRun(ctx, ended, orchestrator.JobResult{Digest: "x"}) }},
			{"taken", func() error {
				taken, err := db.RecordDelivery(ctx, webhook.Delivery{Signature: string(hook.ID), At: noon, Run: hook})
				if err == nil && taken != webhook.Recorded {
					err = fmt.Errorf("delivery %d: %s", n, taken)
				}
				return err
			}},
		} {
			if err := s.do(); err != nil {
				return fmt.Errorf("run %d, %s: %w", n, s.name, err)
			}
			fmt.Println(s.name, n)
		}
	}
}

// TestTrimDeletesOnlyUnneededRuns deletes a job with its last run during a trim, so that a new run gets the same seq.
// The trim must not delete it.
func TestTrimDeletesOnlyUnneededRuns(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	for _, job := range []orchestrator.JobID{"old", "new"} {
		must(t, db.SaveJob(ctx, newJob(job), time.Time{}, noon))
	}
	over := newRun("old", "over")
	over.State, over.Ended, over.Result.Notified = orchestrator.RunDone, noon.Add(-time.Hour), true
	get[[]orchestrator.JobRun](t)(db.RecordRuns(ctx, "old", []orchestrator.JobRun{over}, time.Time{}, noon))
	runs := db.JobRuns().(*dataset)
	gone, _, err := runs.selectOld(ctx, heartbeat.Cutoff{Before: noon})
	must(t, err)
	must(t, db.DeleteJob(ctx, "old"))
	get[[]orchestrator.JobRun](t)(db.RecordRuns(ctx, "new", []orchestrator.JobRun{newRun("new", "waits")},
		time.Time{}, noon))
	must(t, runs.deleteRows(ctx, gone))
	if open := get[[]orchestrator.JobRun](t)(db.OpenRuns(ctx)); len(open) != 1 {
		t.Errorf("%d runs wait", len(open))
	}
}
