package heartbeat_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/heartbeat"
	"ductor/orchestrator"
)

// day is the first day of the tests' year.
var day = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const year = 365 * 24 * time.Hour

// TestAYear runs a year of jobs of every sort in Paris, through both of its clock changes, and holds when each ran.
func TestAYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paris := zone(t, "Europe/Paris")
		h := build(t, day.Add(-time.Hour), lazily, in("Europe/Paris"))
		counts := map[heartbeat.JobID]int{}
		for schedule, want := range map[string]int{
			"30 2 * * *":          365, // in the night the clocks are set
			"0 8 * * 1-5":         261,
			"0 0 1 * *":           12,
			"every 6h":            4 * 365,
			"0 * 25 * *":          11*24 + 25, // by real hours: on one of these days the clock is set back
			"0 */6 * * *":         4 * 365,
			"0 9 29 2 *":          0,
			"at 2026-05-01 12:00": 1,
		} {
			counts[h.add(t, schedule, func(j *heartbeat.Job) { j.Prompt = schedule }).Job.ID] = want
		}
		h.start(t)
		time.Sleep(year + time.Minute)
		h.stop()
		got := map[heartbeat.JobID]int{}
		nights := map[string]int{}
		for i, o := range h.desk.asked {
			got[o.Job]++
			if at := h.desk.at[i].In(paris); o.Prompt == "30 2 * * *" {
				nights[at.Format(time.DateOnly)]++
				if clock := at.Format(time.TimeOnly); clock != "02:30:00" && at.Format(time.DateTime) != "2026-03-29 03:00:00" {
					t.Errorf("the night's job ran at %s", at)
				}
			}
		}
		for id, want := range counts {
			if st := h.get(t, id); got[id] != want || st.Runs != want || st.CostUSD != float64(want)*0.25 {
				t.Errorf("%q was asked for %d times and ended %d for %v; want %d", st.Job.Schedule, got[id], st.Runs, st.CostUSD, want)
			}
		}
		if len(nights) != 365 {
			t.Errorf("the night's job ran in %d nights", len(nights))
		}
	})
}

// TestAMachineThatSleeps: timers stand still for eight hours, the wall clock does not. What was due meanwhile is
// seen within a nap, and the policy for what was missed applies.
func TestAMachineThatSleeps(t *testing.T) {
	for policy, want := range map[heartbeat.Missed][]string{
		heartbeat.MissedSkip: {"18:00"},
		heartbeat.MissedOnce: {"17:30", "18:00"},
		heartbeat.MissedAll:  {"17:30", "17:30", "17:30", "17:30", "17:30", "17:30", "17:30", "17:30", "18:00"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, day.Add(9*time.Hour+30*time.Minute-8*time.Second))
				st := h.add(t, "0 * * * *", func(j *heartbeat.Job) { j.Missed = policy })
				h.start(t)
				time.Sleep(8 * time.Second)
				h.move(8 * time.Hour) // from 9:30 to 17:30: 10:00 to 17:00 are missed
				time.Sleep(45 * time.Minute)
				h.stop()
				var got []string
				for _, at := range h.desk.times() {
					got = append(got, at.UTC().Format("15:04"))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				runs, err := h.Runs(t.Context(), st.Job.ID, here, 20)
				if err != nil {
					t.Fatal(err)
				}
				stand := 0
				for _, r := range runs {
					stand += r.StandsFor
				}
				if stand != 9 {
					t.Errorf("the runs stand for %d moments of 9", stand)
				}
			})
		})
	}
}

// TestAClockThatIsSetBack never has a moment run twice, and a clock that was a year ahead does not silence a job
// for a year.
func TestAClockThatIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, day.Add(7*time.Hour+55*time.Minute))
		h.add(t, "0 8 * * *")
		h.start(t)
		ran := func(when string, want int) {
			t.Helper()
			if got := len(h.desk.times()); got != want {
				t.Errorf("%s: it ran %d times, want %d", when, got, want)
			}
		}
		time.Sleep(10 * time.Minute)
		ran("first morning", 1)
		h.move(-30 * time.Minute) // 7:35 again
		time.Sleep(time.Hour)
		ran("a little back", 1)
		h.move(-4 * time.Hour) // 4:35 again
		time.Sleep(8 * time.Hour)
		ran("hours back", 1)
		time.Sleep(24 * time.Hour)
		ran("second morning", 2)
		h.move(year)
		time.Sleep(time.Minute)
		ran("a year ahead", 3)
		h.move(-year)
		time.Sleep(24 * time.Hour)
		ran("and back", 4)
		h.stop()
	})
}

// TestAnOverlap: what is due while the run before is not over is skipped or waits, as the job wants.
func TestAnOverlap(t *testing.T) {
	for policy, want := range map[heartbeat.Overlap]int{heartbeat.OverlapSkip: 2, heartbeat.OverlapQueue: 4} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, day)
				st := h.add(t, "every 10m", func(j *heartbeat.Job) { j.Overlap = policy })
				h.desk.set(func() { h.desk.hang = true })
				h.start(t)
				time.Sleep(35 * time.Minute) // due at 10, 20 and 30
				if got := len(h.desk.times()); got != 1 {
					t.Errorf("%d runs at a time", got)
				}
				h.desk.set(func() { h.desk.hang = false })
				h.desk.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "fine"})
				time.Sleep(10 * time.Minute)
				h.stop()
				if got := len(h.desk.times()); got != want {
					t.Errorf("it ran %d times, want %d", got, want)
				}
				if got := h.get(t, st.Job.ID); got.Open != 0 {
					t.Errorf("%d runs are open", got.Open)
				}
			})
		})
	}
}

func TestAQueueOfOverlapsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, day)
		st := h.add(t, "every 1m", func(j *heartbeat.Job) { j.Overlap = heartbeat.OverlapQueue })
		h.desk.set(func() { h.desk.hang = true })
		h.start(t)
		time.Sleep(2 * time.Hour)
		h.stop()
		if got := h.get(t, st.Job.ID); got.Open != heartbeat.MostQueued {
			t.Errorf("%d runs are open, want %d", got.Open, heartbeat.MostQueued)
		}
	})
}

// TestQuietHours holds what is due in them until they end, or skips it; a person may still run it.
func TestQuietHours(t *testing.T) {
	for policy, want := range map[heartbeat.QuietPolicy][]string{
		heartbeat.QuietHold: {"21:00", "03:00", "07:00", "09:00"},
		heartbeat.QuietSkip: {"21:00", "03:00", "09:00"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, day.Add(18*time.Hour))
				st := h.add(t, "0 9,21,23 * * *", func(j *heartbeat.Job) {
					j.Quiet = heartbeat.Quiet{From: "22:00", To: "07:00", Policy: policy}
				})
				h.start(t)
				time.Sleep(9 * time.Hour)
				if _, err := h.RunNow(t.Context(), st.Job.ID, here, "press 1"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(7 * time.Hour)
				h.stop()
				var got []string
				for _, at := range h.desk.times() {
					got = append(got, at.UTC().Format("15:04"))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestRetries tries a failed run again after waits that double, as turns of their own, and tells the chat of the end
// only. What a person ended or a crash interrupted is not tried again.
func TestRetries(t *testing.T) {
	for state, want := range map[orchestrator.TurnState][]time.Duration{
		orchestrator.TurnFailed:      {0, time.Minute, 3 * time.Minute, 7 * time.Minute},
		orchestrator.TurnInterrupted: {0},
		orchestrator.TurnAborted:     {0},
	} {
		t.Run(string(state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, day)
				h.desk.answer = func(heartbeat.Order) orchestrator.Outcome {
					return orchestrator.Outcome{State: state, Failure: "It broke.", CostUSD: 1}
				}
				st := h.add(t, "0 1 * * *", func(j *heartbeat.Job) { j.Retries = 3 })
				h.start(t)
				time.Sleep(3 * time.Hour)
				h.stop()
				var got []time.Duration
				for _, at := range h.desk.times() {
					got = append(got, at.Sub(day.Add(time.Hour)))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if st = h.get(t, st.Job.ID); st.Runs != 1 || st.CostUSD != float64(len(want)) {
					t.Errorf("the job counts %d runs for %v", st.Runs, st.CostUSD)
				}
				told := 1
				if state == orchestrator.TurnAborted {
					told = 0
				}
				if shown := h.chat.shown(); len(shown) != told {
					t.Errorf("the chat was told %d times", len(shown))
				} else if told == 1 && (shown[0].Silent || shown[0].Run.Reason != "It broke.") {
					t.Errorf("the chat was told %+v", shown[0])
				}
			})
		})
	}
}

// TestAnUnchangedResultDisturbsNobody: the same answer again is silent, another or a failure is not, and what follows
// a failure is news.
func TestAnUnchangedResultDisturbsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, day)
		answers := []string{"all green", "all  green\n", "red", "!", "red", "OK", "red"}
		h.desk.answer = func(heartbeat.Order) orchestrator.Outcome {
			a := answers[0]
			answers = answers[1:]
			if a == "!" {
				return orchestrator.Outcome{State: orchestrator.TurnFailed, Failure: "It broke."}
			}
			return orchestrator.Outcome{State: orchestrator.TurnDone, Text: a}
		}
		h.add(t, "every 1h", func(j *heartbeat.Job) { j.OKWord = "ok" })
		h.start(t)
		time.Sleep(7*time.Hour + time.Minute)
		h.stop()
		var got []string
		for _, r := range h.chat.shown() {
			got = append(got, fmt.Sprintf("%s%s silent=%v", r.Run.Text, r.Run.Reason, r.Silent))
		}
		want := []string{"all green silent=false", "all  green\n silent=true", "red silent=false", "It broke. silent=false",
			"red silent=false", "red silent=true"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestABusyConversationQueues: a full queue is waited for, however long, and a job that is refused fails with the reason.
func TestABusyConversationQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, day)
		h.desk.full = true
		st := h.add(t, "0 1 * * *")
		h.start(t)
		time.Sleep(5 * time.Hour)
		if got := h.get(t, st.Job.ID); got.Open != 1 || got.Last != nil {
			t.Errorf("it stands at %+v", got)
		}
		h.desk.set(func() { h.desk.full = false })
		time.Sleep(time.Minute)
		if got := h.get(t, st.Job.ID); got.Open != 0 || got.Last == nil || got.Last.State != heartbeat.RunDone {
			t.Errorf("it stands at %+v", got)
		}
		h.desk.set(func() { h.desk.refuse = fmt.Errorf("Docker is wanted and not there: %w", heartbeat.ErrRefused) })
		time.Sleep(24 * time.Hour)
		h.stop()
		if got := h.get(t, st.Job.ID); got.Last.State != heartbeat.RunFailed || got.Last.Reason != "It did not run. Docker is wanted and not there" {
			t.Errorf("it ended as %+v", got.Last)
		}
		if shown := h.chat.shown(); len(shown) != 2 || shown[1].Silent {
			t.Errorf("the chat was told %+v", shown)
		}
	})
}

// TestAPulseNeverComesBetween: a proactive prompt waits while a turn uses its session, and its silent word is shown
// to nobody.
func TestAPulseNeverComesBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, day)
		h.desk.busy = true
		h.desk.answer = func(heartbeat.Order) orchestrator.Outcome {
			return orchestrator.Outcome{State: orchestrator.TurnDone, Text: " **HEARTBEAT_OK**. "}
		}
		pulse := heartbeat.Pulse{Name: "watch", Conversation: here, Every: time.Hour, Prompt: "Anything?", Session: heartbeat.SharedSession}
		if err := h.Sync(t.Context(), []heartbeat.Job{pulse.Job()}); err != nil {
			t.Fatal(err)
		}
		h.start(t)
		time.Sleep(3*time.Hour + time.Minute)
		if n := len(h.desk.times()); n != 0 {
			t.Errorf("it came between %d times", n)
		}
		h.desk.set(func() { h.desk.busy = false })
		time.Sleep(time.Hour)
		h.stop()
		if n := len(h.desk.times()); n != 2 {
			t.Errorf("it ran %d times: once for the hours it waited, once after", n)
		}
		if len(h.chat.shown()) != 0 {
			t.Errorf("the silent word was shown: %+v", h.chat.shown())
		}
	})
}

func TestAReportThatFailsIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, day)
		h.chat.fail = true
		h.add(t, "0 1 * * *")
		h.start(t)
		time.Sleep(2 * time.Hour)
		h.chat.mu.Lock()
		h.chat.fail = false
		h.chat.mu.Unlock()
		time.Sleep(time.Minute)
		h.stop()
		if len(h.chat.shown()) != 1 {
			t.Errorf("the chat was told %d times", len(h.chat.shown()))
		}
	})
}

// TestWhatPeopleDoWithJobs goes through what the chat's screens do.
func TestWhatPeopleDoWithJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, day)
		ctx, there := t.Context(), orchestrator.ConversationID{Chat: 8}
		st := h.add(t, "0 1 * * *")
		id := st.Job.ID
		h.start(t)
		defer h.stop()
		if st.Next != day.Add(time.Hour) || st.Job.Name != "look" || !st.Job.Enabled {
			t.Errorf("it was added as %+v", st)
		}
		if st, err := h.Pause(ctx, id, here); err != nil || st.Job.Enabled {
			t.Errorf("paused: %+v, %v", st, err)
		}
		time.Sleep(30 * time.Hour)
		for _, want := range []error{nil, orchestrator.ErrRepeated} { // a press that is delivered twice
			if _, err := h.RunNow(ctx, id, here, "press 7"); !errors.Is(err, want) {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		if n := len(h.desk.times()); n != 1 {
			t.Errorf("paused and run now it ran %d times", n)
		}
		if st, err := h.Resume(ctx, id, here); err != nil || st.Next != day.Add(49*time.Hour) {
			t.Errorf("resumed, it is due at %s, %v", st.Next, err)
		}
		if st, err := h.Edit(ctx, id, here, func(j *heartbeat.Job) { j.Schedule, j.Prompt = "0 2 * * *", "see" }); err != nil || st.Next != day.Add(50*time.Hour) {
			t.Errorf("edited, it is due at %s, %v", st.Next, err)
		}
		if _, err := h.Edit(ctx, id, here, func(j *heartbeat.Job) { j.Schedule = "soon" }); err == nil {
			t.Error("a schedule that is none was taken")
		}
		for what, err := range map[string]error{
			"pause":  second(h.Pause(ctx, id, there)),
			"run":    second(h.RunNow(ctx, id, there, "x")),
			"edit":   second(h.Edit(ctx, id, there, func(*heartbeat.Job) {})),
			"look":   second(h.Get(ctx, id, there)),
			"delete": h.Delete(ctx, id, there),
		} {
			if !errors.Is(err, orchestrator.ErrElsewhere) {
				t.Errorf("%s from another chat: %v", what, err)
			}
		}
		time.Sleep(24 * time.Hour)
		if list, err := h.List(ctx, here); err != nil || len(list) != 1 || list[0].Runs != 2 || list[0].Last.Prompt != "see" {
			t.Errorf("the list is %+v, %v", list, err)
		}
		if list, err := h.List(ctx, there); err != nil || len(list) != 0 {
			t.Errorf("another chat sees %+v, %v", list, err)
		}
		if err := errors.Join(h.Delete(ctx, id, here), h.Delete(ctx, id, here)); !errors.Is(err, heartbeat.ErrNoJob) {
			t.Errorf("deleted twice: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestJobsOfTheConfiguration come and go with it, keep what was missed, and are changed nowhere else.
func TestJobsOfTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, day)
		ctx := t.Context()
		job := func(name, schedule string) heartbeat.Job {
			return heartbeat.Job{Name: name, Conversation: here, Prompt: name, Schedule: schedule, Enabled: true}
		}
		sync := func(jobs ...heartbeat.Job) {
			t.Helper()
			if err := h.Sync(ctx, jobs); err != nil {
				t.Fatal(err)
			}
		}
		names := func() (names []string) {
			for _, st := range h.store.jobs {
				names = append(names, st.Job.Name)
			}
			slices.Sort(names)
			return names
		}
		sync(job("a", "0 1 * * *"), job("b", "0 2 * * *"))
		own := h.add(t, "0 3 * * *")
		if err := h.Sync(ctx, []heartbeat.Job{job("a", "0 1 * * *"), job("c", "soon")}); err == nil {
			t.Error("a wrong job was taken")
		}
		if diff := cmp.Diff([]string{"a", "b", "look"}, names()); diff != "" {
			t.Error(diff)
		}
		a := heartbeat.ConfigID(heartbeat.KindSchedule, "a")
		if _, err := h.Pause(ctx, a, here); err != nil {
			t.Fatal(err)
		}
		if err := h.Delete(ctx, a, here); !errors.Is(err, heartbeat.ErrFromConfig) {
			t.Errorf("delete: %v", err)
		}
		if _, err := h.Edit(ctx, a, here, func(*heartbeat.Job) {}); !errors.Is(err, heartbeat.ErrFromConfig) {
			t.Errorf("edit: %v", err)
		}
		h.move(5 * time.Hour) // ductor was not there at 1, 2 and 3
		h.renew()
		sync(job("a", "0 1 * * *"), job("b", "0 2 * * *"))
		h.start(t)
		time.Sleep(time.Minute)
		h.stop()
		var ran []string
		for _, o := range h.desk.asked {
			ran = append(ran, o.Prompt)
		}
		slices.Sort(ran)
		if diff := cmp.Diff([]string{"b", "look"}, ran); diff != "" {
			t.Errorf("made up for (a is paused): %s", diff)
		}
		sync(job("a", "0 1 * * *"))
		if diff := cmp.Diff([]string{"a", "look"}, names()); diff != "" {
			t.Error(diff)
		}
		if h.get(t, a).Job.Enabled || h.get(t, own.Job.ID).Job.Source != heartbeat.FromChat {
			t.Error("a job lost what the chat said of it")
		}
	})
}
