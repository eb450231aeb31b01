package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/render"
	"ductor/heartbeat"
	"ductor/orchestrator"
)

// before has a job of the chat, and its page open.
func (r *cronRig) before() {
	r.t.Helper()
	for _, step := range []string{"/cron every day at 9 look", "[✅ Add]"} {
		r.do(step)
	}
}

// kept says how the jobs of the private chat stand.
func (r *cronRig) kept() (all []string) {
	r.t.Helper()
	list, err := r.commands.crons.jobs.Jobs(r.t.Context(), orchestrator.ConversationID{Chat: owner})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, st := range list {
		all = append(all, fmt.Sprintf("%s paused=%v runs=%d", st.Job.Name, st.Job.Paused, st.Runs+st.Open))
	}
	return all
}

// elsewhere makes a press one in the group, by the owner.
func elsewhere(u map[string]any) map[string]any {
	u["callback_query"].(map[string]any)["message"].(map[string]any)["chat"] = map[string]any{"id": group, "type": "supergroup"}
	return u
}

// TestCronPressesThatChangeNothing: what is old, foreign or made up is answered, and nothing comes of it.
func TestCronPressesThatChangeNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		press func(r *cronRig) map[string]any
		says  string
	}{
		{"of another chat", func(r *cronRig) map[string]any { return elsewhere(r.press(r.data("⏸ Pause"), r.message)) }, cronGone},
		{"of a job that is gone", func(r *cronRig) map[string]any {
			return r.press(cronButton("x", cronPause, jobKey("gone"), "").Data, r.message)
		}, cronGone},
		{"of a draft that is over", func(r *cronRig) map[string]any {
			data := r.data("⏸ Pause")
			r.do("/cron every day at 10 look")
			add := r.data("✅ Add")
			r.do("[✖ Cancel]")
			if data == add {
				r.t.Error("two buttons are the same")
			}
			return r.press(add, r.message)
		}, cronOver},
		{"of a draft of another chat", func(r *cronRig) map[string]any {
			r.do("/cron every day at 10 look")
			return elsewhere(r.press(r.data("✅ Add"), r.message))
		}, cronGone},
		{"of a draft that never was", func(r *cronRig) map[string]any { return r.press("j:a:+made-up:", r.message) }, cronGone},
		{"of a field that is none", func(r *cronRig) map[string]any {
			return r.press(strings.Replace(r.data("⏸ Pause"), "j:p:", "j:f:", 1)+"?", r.message)
		}, render.StaleButton},
		{"of a choice that is none", func(r *cronRig) map[string]any {
			return r.press(strings.Replace(r.data("⏸ Pause"), "j:p:", "j:v:", 1)+"m99", r.message)
		}, cronGone},
		{"of nothing at all", func(r *cronRig) map[string]any { return r.press("j:::::", r.message) }, render.StaleButton},
		{"of an operation that is none", func(r *cronRig) map[string]any {
			return r.press(strings.Replace(r.data("⏸ Pause"), "j:p:", "j:?:", 1), r.message)
		}, render.StaleButton},
	} {
		t.Run(c.name, func(t *testing.T) {
			withJobs(t, func(r *cronRig) {
				r.before()
				r.send(c.press(r))
				time.Sleep(time.Second)
				synctest.Wait()
				if got := r.voice.lastAnswer(); got != c.says {
					t.Errorf("it is answered %q, not %q", got, c.says)
				}
				if got := r.kept(); len(got) != 1 || got[0] != "look paused=false runs=0" {
					t.Errorf("there is %q", got)
				}
			})
		})
	}
}

// TestCronIsForThoseWhoAreListed: in a group only they may look, run and change.
func TestCronIsForThoseWhoAreListed(t *testing.T) {
	const guest = 99
	withJobs(t, func(r *cronRig) {
		r.gate.allow.Members = AllMembers
		r.do("/cron every day at 9 look")
		in := orchestrator.ConversationID{Chat: group}
		j, err := r.commands.crons.jobs.ReadJob("every day at 9 look")
		if err != nil {
			t.Fatal(err)
		}
		j.ID, j.Conversation, j.Person = "chat/one", in, owner
		if _, err := r.commands.crons.jobs.AddJob(r.t.Context(), j); err != nil {
			t.Fatal(err)
		}
		by := func(u map[string]any) map[string]any {
			u = elsewhere(u)
			u["callback_query"].(map[string]any)["from"] = map[string]any{"id": guest, "first_name": "Guest"}
			return u
		}
		for _, op := range []cronOp{
			cronPause, cronResume, cronEdit, cronField, cronValue, cronModel, cronDelete, cronDeleted, cronAdd, cronCancel,
			cronOpen, cronHistory, cronList, cronNew, cronRun,
		} {
			r.send(by(r.press(cronButton("x", op, jobKey("chat/one"), "0").Data, 9)))
			time.Sleep(time.Second)
			synctest.Wait()
			if got := r.voice.lastAnswer(); got != membersSentence {
				t.Errorf("%s by a guest is answered %q", op, got)
			}
		}
		r.send(r.text("/cron every day at 9 mine", inGroup(), map[string]any{"from": map[string]any{"id": guest, "first_name": "Guest"}}))
		time.Sleep(time.Second)
		synctest.Wait()
		if l := r.journal.lastLetter(t); l.Text != membersSentence {
			t.Errorf("a guest's request is answered %q", l.Text)
		}
		st, err := r.commands.crons.jobs.Job(r.t.Context(), "chat/one", in)
		if err != nil || st.Job.Paused || st.Open != 0 {
			t.Errorf("it stands at %+v, %v", st, err)
		}
	})
}

// TestWhatIsPressedTwiceIsDoneOnce: before the button is drawn anew, and after a crash that has the update come again.
func TestWhatIsPressedTwiceIsDoneOnce(t *testing.T) {
	withJobs(t, func(r *cronRig) {
		r.do("/cron every day at 9 look")
		add := r.data("✅ Add")
		r.send(r.press(add, r.message), r.press(add, r.message))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := r.voice.lastAnswer(); got != "That was added already." {
			t.Errorf("the second press is answered %q", got)
		}
		r.see()
		run := r.data("🚀 Run now")
		r.send(r.press(run, r.message), r.press(run, r.message))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := r.kept(); len(got) != 1 || got[0] != "look paused=false runs=1" {
			t.Errorf("there is %q", got)
		}
		if got := r.voice.lastAnswer(); got != "That was started already." {
			t.Errorf("the second press is answered %q", got)
		}
		r.do("+5m")
		r.do("/cron")
		r.do("[⏰ 1. look]")
		r.do("[🚀 Run now]")
		if got := r.kept(); got[0] != "look paused=false runs=2" {
			t.Errorf("pressed later, there is %q", got)
		}
	})
}

// TestRepliesThatAreNotForAJob are prompts: late ones, those of others, and those to messages that wait for nothing.
func TestRepliesThatAreNotForAJob(t *testing.T) {
	for name, before := range map[string]func(r *cronRig){
		"late":         func(r *cronRig) { r.do("[✏️ Edit]"); r.do("[Name]"); time.Sleep(wordsPatience) },
		"turned back":  func(r *cronRig) { r.do("[✏️ Edit]"); r.do("[Name]"); r.do("[‹ Back]") },
		"never wanted": func(r *cronRig) {},
	} {
		t.Run(name, func(t *testing.T) {
			withJobs(t, func(r *cronRig) {
				r.before()
				before(r)
				r.do("> another name")
				if got := r.desk.Texts(); len(got) != 1 || !strings.HasSuffix(got[0], "another name") {
					t.Errorf("the prompts are %q", got)
				}
				if got := r.kept(); got[0] != "look paused=false runs=0" {
					t.Errorf("there is %q", got)
				}
			})
		})
	}
}

// TestJobsOfTheConfigurationInTheChat can be paused and run, and say where they are changed; their ids may be long.
func TestJobsOfTheConfigurationInTheChat(t *testing.T) {
	withJobs(t, func(r *cronRig) {
		var jobs []orchestrator.Job
		for i := range 10 {
			jobs = append(jobs, orchestrator.Job{
				Name: fmt.Sprintf("%s-%02d", strings.Repeat("long", 14), i), Prompt: "look", Conversation: orchestrator.ConversationID{Chat: owner}, Person: owner,
				JobTiming: orchestrator.JobTiming{Schedule: "0 9 * * *"},
			})
		}
		if err := r.scheduler.Sync(r.t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		name := strings.Repeat("long", 14) + "-09"
		for _, step := range []string{"/cron", "[›]", "[⏰ 10. " + name + "]", "[⏸ Pause]", "[🚀 Run now]", "[📜 History]", "[‹ Back]"} {
			r.do(step)
		}
		if text := r.out.String(); !strings.Contains(text, "It is written in config.toml, under [jobs."+name+"], and is changed there.") {
			t.Errorf("it says\n%s", text)
		}
		for _, row := range r.buttons {
			for _, b := range row {
				if b.Text == "✏️ Edit" || b.Text == "🗑 Delete" {
					t.Errorf("it offers %s", b.Text)
				}
			}
		}
		for _, op := range []cronOp{cronEdit, cronDeleted, cronValue} {
			r.send(r.press(cronButton("x", op, jobKey(orchestrator.JobID("config/"+name)), "m1").Data, r.message))
			time.Sleep(time.Second)
			synctest.Wait()
			if got := r.voice.lastAnswer(); !strings.Contains(got, "configuration file") {
				t.Errorf("%s is answered %q", op, got)
			}
		}
		if got := r.kept(); len(got) != 10 || got[9] != name+" paused=true runs=1" {
			t.Errorf("there is %q", got)
		}
	})
}

func TestTooManyJobsAreRefused(t *testing.T) {
	withJobs(t, func(r *cronRig) {
		j, err := r.commands.crons.jobs.ReadJob("every day at 9 look")
		if err != nil {
			t.Fatal(err)
		}
		j.Conversation = orchestrator.ConversationID{Chat: owner}
		for i := range heartbeat.MostJobs {
			j.ID = orchestrator.JobID(fmt.Sprint("chat/", i))
			if _, err := r.commands.crons.jobs.AddJob(r.t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
		r.do("/cron every day at 9 one more")
		r.do("[✅ Add]")
		if got := r.voice.lastAnswer(); got != cronFull || len(r.kept()) != heartbeat.MostJobs {
			t.Errorf("answer %q, %d jobs", got, len(r.kept()))
		}
	})
}

// TestCronWithoutWhatItNeeds says so, and goes on.
func TestCronWithoutWhatItNeeds(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.send(r.text("/cron"), r.press("j:o:x:", 9))
		synctest.Wait()
		if l := r.journal.lastLetter(t); l.Text != cronNoJobs || r.voice.lastAnswer() != render.StaleButton {
			t.Errorf("letter %q, answer %q", l.Text, r.voice.lastAnswer())
		}
	})
	withJobs(t, func(r *cronRig) {
		r.before()
		r.commands.crons.jobs = brokenJobs{}
		r.do("/cron")
		r.do("[⏸ Pause]")
		if l := r.journal.lastLetter(t); !strings.Contains(l.Text, "The log says what is wrong") || !strings.Contains(r.voice.lastAnswer(), "did not work") {
			t.Errorf("letter %q, answer %q", l.Text, r.voice.lastAnswer())
		}
	})
}

type anyJobs = orchestrator.Jobs

type brokenJobs struct{ anyJobs }

func (brokenJobs) Jobs(context.Context, orchestrator.ConversationID) ([]orchestrator.JobStatus, error) {
	return nil, errors.New("disk full")
}

func FuzzParseCronData(f *testing.F) {
	f.Add("o:0123456789abcdef:")
	f.Add("v:+AQIDBAUGBwgJ:m1")
	f.Add("l::3")
	f.Fuzz(func(t *testing.T, what string) {
		p, ok := parseCronData(what)
		if !ok {
			return
		}
		if again := cronButton("x", p.op, p.key, p.arg).Data; again != actCron+":"+what {
			t.Fatalf("%q is made of %q", again, what)
		}
		p.number()
		if field, i, ok := p.choice(); ok && (len(field) != 1 || i < 0) {
			t.Fatalf("%q chooses %q %d", what, field, i)
		}
	})
}

// TestAMenuOfModelsForADraftThatChanged: what was changed of a draft while the menu was open stays, and one that is over
// stays so.
func TestAMenuOfModelsForADraftThatChanged(t *testing.T) {
	menu := func(r *cronRig) (page, menu map[string]string) {
		r.do("/cron every hour look")
		page = map[string]string{"add": r.data("✅ Add")}
		r.do("[✏️ Change]")
		page["schedule"] = r.data("Schedule")
		for _, step := range []string{"[Model]", "[Choose…]", "[✓ claude]"} {
			r.do(step)
		}
		return page, map[string]string{"sonnet": r.data("Sonnet 4")}
	}
	draft := func(r *cronRig, add string) (orchestrator.Job, error) {
		p, _ := parseCronData(strings.TrimPrefix(add, actCron+":"))
		nonce, _ := p.draft()
		return r.commands.crons.loadDraft(r.t.Context(), orchestrator.ConversationID{Chat: owner}, nonce)
	}
	press := func(r *cronRig, data string, message int) {
		r.send(r.press(data, message))
		time.Sleep(time.Second)
		synctest.Wait()
	}
	t.Run("changed", func(t *testing.T) {
		withJobs(t, func(r *cronRig) {
			page, menu := menu(r)
			message := r.message
			press(r, page["schedule"], message)
			r.do("> every 3 hours")
			press(r, menu["sonnet"], message)
			if j, err := draft(r, page["add"]); err != nil || j.Model != "sonnet" || j.When != "every 3 hours" {
				t.Errorf("the draft runs %q with %q, %v", j.When, j.Model, err)
			}
		})
	})
	t.Run("over", func(t *testing.T) {
		withJobs(t, func(r *cronRig) {
			page, menu := menu(r)
			message := r.message
			press(r, page["add"], message)
			press(r, menu["sonnet"], message)
			if j, err := draft(r, page["add"]); !errors.Is(err, orchestrator.ErrRepeated) {
				t.Errorf("the draft is there again, with %q, %v", j.Model, err)
			}
		})
	})
}

// pausedBefore has somebody pause a job just before it is changed.
type pausedBefore struct{ jobDesk }

// jobDesk is orchestrator.Jobs, of which a method has the name too.
type jobDesk interface{ orchestrator.Jobs }

func (p pausedBefore) EditJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press, change func(*orchestrator.Job) error) (orchestrator.JobStatus, error) {
	if st, err := p.jobDesk.EditJob(ctx, id, by, func(j *orchestrator.Job) error { j.Paused = true; return nil }); err != nil {
		return st, err
	}
	return p.jobDesk.EditJob(ctx, id, by, change)
}

func TestAReplyThatChangesAJobLeavesItPaused(t *testing.T) {
	withJobs(t, func(r *cronRig) {
		for _, step := range []string{"/cron every hour look", "[✅ Add]", "[✏️ Edit]", "[Schedule]"} {
			r.do(step)
		}
		r.commands.crons.jobs = pausedBefore{r.commands.crons.jobs}
		r.do("> every 3 hours")
		all, err := r.commands.crons.jobs.Jobs(r.t.Context(), orchestrator.ConversationID{Chat: owner})
		if err != nil || len(all) != 1 || all[0].Job.When != "every 3 hours" || !all[0].Job.Paused {
			t.Errorf("%+v, %v", all, err)
		}
	})
}
