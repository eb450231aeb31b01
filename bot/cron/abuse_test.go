package cron

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ductor/bot/tgapi"
	"ductor/heartbeat"
	"ductor/lang"
	"ductor/orchestrator"
)

// before adds a job and opens its page.
func (r *rig) before() {
	r.t.Helper()
	for _, step := range []string{"/cron every day at 9 look", "[✅ Add]"} {
		r.do(step)
	}
}

// kept describes the jobs of the private chat.
func (r *rig) kept() (all []string) {
	r.t.Helper()
	list, err := r.o.Jobs.Jobs(r.t.Context(), orchestrator.ConversationID{Chat: owner})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, st := range list {
		all = append(all, fmt.Sprintf("%s paused=%v runs=%d", st.Job.Name, st.Job.Paused, st.Runs+st.Open))
	}
	return all
}

// TestCronPressesThatChangeNothing tests that old, foreign and forged buttons get an answer and change nothing.
func TestCronPressesThatChangeNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		press func(r *rig)
		says  string
	}{
		{"of another chat", func(r *rig) { r.pressIn(group, r.data("⏸ Pause")) }, lang.Printer{}.Text("cron.gone")},
		{"of a job that is gone", func(r *rig) {
			r.press(newButton("x", opPause, jobKey("gone"), "").Data)
		}, lang.Printer{}.Text("cron.gone")},
		{"of a draft that is over", func(r *rig) {
			data := r.data("⏸ Pause")
			r.do("/cron every day at 10 look")
			add := r.data("✅ Add")
			r.do("[✖ Cancel]")
			if data == add {
				r.t.Error("two buttons are the same")
			}
			r.press(add)
		}, lang.Printer{}.Text("cron.over")},
		{"of a draft of another chat", func(r *rig) {
			r.do("/cron every day at 10 look")
			r.pressIn(group, r.data("✅ Add"))
		}, lang.Printer{}.Text("cron.gone")},
		{"of a draft that never was", func(r *rig) { r.press("j:a:+made-up:") }, lang.Printer{}.Text("cron.gone")},
		{"of a field that is none", func(r *rig) {
			r.press(strings.Replace(r.data("⏸ Pause"), "j:p:", "j:f:", 1) + "?")
		}, (lang.Printer{}).Text("common.stale-button")},
		{"of a choice that is none", func(r *rig) {
			r.press(strings.Replace(r.data("⏸ Pause"), "j:p:", "j:v:", 1) + "m99")
		}, lang.Printer{}.Text("cron.gone")},
		{"of nothing at all", func(r *rig) { r.press("j:::::") }, (lang.Printer{}).Text("common.stale-button")},
		{"of an operation that is none", func(r *rig) {
			r.press(strings.Replace(r.data("⏸ Pause"), "j:p:", "j:?:", 1))
		}, (lang.Printer{}).Text("common.stale-button")},
	} {
		t.Run(c.name, func(t *testing.T) {
			withJobs(t, func(r *rig) {
				r.before()
				c.press(r)
				if got := r.answer; got != c.says {
					t.Errorf("it is answered %q, not %q", got, c.says)
				}
				if got := r.kept(); len(got) != 1 || got[0] != "look paused=false runs=0" {
					t.Errorf("there is %q", got)
				}
			})
		})
	}
}

// TestWhatIsPressedTwiceIsDoneOnce tests a second press before the button changes, and one that Telegram sends again
// after a crash.
func TestWhatIsPressedTwiceIsDoneOnce(t *testing.T) {
	withJobs(t, func(r *rig) {
		r.do("/cron every day at 9 look")
		add := r.data("✅ Add")
		r.press(add)
		r.press(add)
		if got := r.answer; got != "That was already added." {
			t.Errorf("the second press is answered %q", got)
		}
		run := r.data("🚀 Run now")
		r.press(run)
		r.press(run)
		if got := r.kept(); len(got) != 1 || got[0] != "look paused=false runs=1" {
			t.Errorf("there is %q", got)
		}
		if got := r.answer; got != "That was already started." {
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

// TestRepliesThatAreNotForAJob tests that replies to messages that ask for nothing are prompts.
func TestRepliesThatAreNotForAJob(t *testing.T) {
	for name, before := range map[string]func(r *rig){
		"turned back":  func(r *rig) { r.do("[✏️ Edit]"); r.do("[⚙️ More]"); r.do("[Name]"); r.do("[‹ Back]") },
		"never wanted": func(r *rig) {},
	} {
		t.Run(name, func(t *testing.T) {
			withJobs(t, func(r *rig) {
				r.before()
				before(r)
				r.do("> another name")
				if got := r.prompts; len(got) != 1 || got[0] != "another name" {
					t.Errorf("the prompts are %q", got)
				}
				if got := r.kept(); got[0] != "look paused=false runs=0" {
					t.Errorf("there is %q", got)
				}
			})
		})
	}
}

// TestALateReplyIsForTheJob tests that a reply changes a job also long after the question. A user who may not change jobs
// cannot answer the question.
func TestALateReplyIsForTheJob(t *testing.T) {
	withJobs(t, func(r *rig) {
		r.before()
		r.do("[✏️ Edit]")
		r.do("[⚙️ More]")
		r.do("[Name]")
		r.do("+1h")
		member := by(owner)
		member.Person, member.Role = member.Person+1, orchestrator.RoleMember
		reply := Reply{By: member, To: r.message, Text: "a member's name"}
		state := r.Reply(t.Context(), reply, func(p tgapi.Page, _ bool) { r.send(p) })
		if got := r.kept(); state != Prompt || got[0] != "look paused=false runs=0" {
			t.Errorf("a member's reply is in state %v, and there is %q", state, got)
		}
		r.do("> another name")
		if got := r.kept(); len(r.prompts) > 0 || got[0] != "another name paused=false runs=0" {
			t.Errorf("the prompts are %q, and there is %q", r.prompts, got)
		}
	})
}

// TestJobsOfTheConfigurationInTheChat tests that configured jobs can be paused and run in the chat, that their page
// names the section to edit, and that their ids may be long.
func TestJobsOfTheConfigurationInTheChat(t *testing.T) {
	withJobs(t, func(r *rig) {
		var jobs []orchestrator.Job
		for i := range 10 {
			jobs = append(jobs, orchestrator.Job{
				Name: fmt.Sprintf("%s-%02d", strings.Repeat("long", 14), i), Prompt: "look",
				Conversation: orchestrator.ConversationID{Chat: owner}, Person: owner,
				JobTiming: orchestrator.JobTiming{Schedule: "0 9 * * *"},
			})
		}
		if err := r.scheduler.Sync(r.t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		name := strings.Repeat("long", 14) + "-09"
		for _, step := range []string{"/cron", "[›]", "[⏰ 10. " + name + "]", "[⏸ Pause]", "[🚀 Run now]", "[📜 History]",
			"[‹ Back]"} {
			r.do(step)
		}
		if text := r.out.String(); !strings.Contains(text,
			"It is in config.toml, under [jobs."+name+"]; change it there.") {
			t.Errorf("it says\n%s", text)
		}
		for _, row := range r.buttons {
			for _, b := range row {
				if b.Text == "✏️ Edit" || b.Text == "🗑 Delete" {
					t.Errorf("it offers %s", b.Text)
				}
			}
		}
		for _, op := range []op{opEdit, opDeleted, opValue} {
			r.press(newButton("x", op, jobKey(orchestrator.JobID("config/"+name)), "m1").Data)
			if got := r.answer; !strings.Contains(got, "configuration file") {
				t.Errorf("%s is answered %q", op, got)
			}
		}
		if got := r.kept(); len(got) != 10 || got[9] != name+" paused=true runs=1" {
			t.Errorf("there is %q", got)
		}
	})
}

// TestButtonsOfAnOlderForm tests buttons from the version that showed all fields on one page. They open their fields,
// and their choices change the job.
func TestButtonsOfAnOlderForm(t *testing.T) {
	withJobs(t, func(r *rig) {
		r.before()
		key := strings.Split(r.data("✏️ Edit"), ":")[2]
		for code, label := range map[string]string{
			"s": "Schedule", "t": "Prompt", "n": "Name", "a": "Model", "m": "Session", "d": "Project",
			"b": "Sandbox", "o": "Time limit", "q": "Quiet hours", "i": "Missed runs", "v": "Overlap",
			"r": "Retries", "p": "Permissions", "u": "Rules", "w": "Tools",
		} {
			r.out.Reset()
			r.press("j:f:" + key + ":" + code)
			if got := r.out.String(); !strings.HasPrefix(got, "edit:\n  look\n  "+label+": ") {
				t.Errorf("%s opens\n%s", code, got)
			}
			r.out.Reset()
			r.do("[‹ Back]")
			if got := r.out.String(); !strings.Contains(got, "["+label+"]") {
				t.Errorf("%s leads back to\n%s", label, got)
			}
		}
		r.press("j:v:" + key + ":v1")
		all, err := r.o.Jobs.Jobs(r.t.Context(), orchestrator.ConversationID{Chat: owner})
		if err != nil || len(all) != 1 || all[0].Job.Overlap != "queue" {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

func TestTooManyJobsAreRefused(t *testing.T) {
	withJobs(t, func(r *rig) {
		j, err := r.o.Jobs.ReadJob(orchestrator.ConversationID{Chat: 42}, "every day at 9 look")
		if err != nil {
			t.Fatal(err)
		}
		j.Conversation = orchestrator.ConversationID{Chat: owner}
		for i := range heartbeat.MostJobs {
			j.ID = orchestrator.JobID(fmt.Sprint("chat/", i))
			if _, err := r.o.Jobs.AddJob(r.t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
		r.do("/cron every day at 9 one more")
		r.do("[✅ Add]")
		if got := r.answer; got != (lang.Printer{}).Text("cron.full") || len(r.kept()) != heartbeat.MostJobs {
			t.Errorf("answer %q, %d jobs", got, len(r.kept()))
		}
	})
}

func FuzzParseButton(f *testing.F) {
	f.Add("o:0123456789abcdef:")
	f.Add("v:+AQIDBAUGBwgJ:m1")
	f.Add("l::3")
	f.Fuzz(func(t *testing.T, what string) {
		p, ok := parseButton(what)
		if !ok {
			return
		}
		if again := newButton("x", p.op, p.key, p.arg).Data; again != Action+":"+what {
			t.Fatalf("%q is made of %q", again, what)
		}
		p.number()
		if field, i, ok := p.choice(); ok && (len(field) != 1 || i < 0) {
			t.Fatalf("%q chooses %q %d", what, field, i)
		}
	})
}

// TestAModelForADraftThatChanged tests two late choices of a model. After the draft changed, both changes stay. After
// the draft was added, it stays closed.
func TestAModelForADraftThatChanged(t *testing.T) {
	open := func(r *rig) (add, schedule, nonce string) {
		r.do("/cron every hour look")
		add = r.data("✅ Add")
		r.do("[✏️ Change]")
		schedule = r.data("Schedule")
		r.do("[Model]")
		r.do("[Choose…]")
		p, _ := parseButton(strings.TrimPrefix(add, Action+":"))
		nonce, _ = p.draft()
		return add, schedule, nonce
	}
	t.Run("changed", func(t *testing.T) {
		withJobs(t, func(r *rig) {
			_, schedule, nonce := open(r)
			r.press(schedule)
			r.do("> every 3 hours")
			r.press("models:opus")
			if j, err := r.loadDraft(r.t.Context(), by(owner).Conversation, nonce); err != nil || j.Model != "opus" ||
				j.When != "every 3 hours" {
				t.Errorf("the draft runs %q with %q, %v", j.When, j.Model, err)
			}
		})
	})
	t.Run("added", func(t *testing.T) {
		withJobs(t, func(r *rig) {
			add, _, nonce := open(r)
			r.press(add)
			r.press("models:opus")
			if j, err := r.loadDraft(r.t.Context(), by(owner).Conversation, nonce); !errors.Is(err,
				orchestrator.ErrRepeated) {
				t.Errorf("the draft is there again, with %q, %v", j.Model, err)
			}
		})
	})
}

// pausedBefore is a jobDesk whose jobs another user pauses just before an edit.
type pausedBefore struct{ jobDesk }

// jobDesk is orchestrator.Jobs under another name, because a method has that name.
type jobDesk interface{ orchestrator.Jobs }

func (p pausedBefore) EditJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press,
	change func(*orchestrator.Job) error) (orchestrator.JobStatus, error) {
	if st, err := p.jobDesk.EditJob(ctx, id, by, func(j *orchestrator.Job) error {
		j.Paused = true
		return nil
	}); err != nil {
		return st, err
	}
	return p.jobDesk.EditJob(ctx, id, by, change)
}

func TestAReplyThatChangesAJobLeavesItPaused(t *testing.T) {
	withJobs(t, func(r *rig) {
		for _, step := range []string{"/cron every hour look", "[✅ Add]", "[✏️ Edit]", "[Schedule]"} {
			r.do(step)
		}
		r.o.Jobs = pausedBefore{r.o.Jobs}
		r.do("> every 3 hours")
		all, err := r.o.Jobs.Jobs(r.t.Context(), orchestrator.ConversationID{Chat: owner})
		if err != nil || len(all) != 1 || all[0].Job.When != "every 3 hours" || !all[0].Job.Paused {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// linked is a jobDesk that resolves the path of each directory to the target of a link.
type linked struct {
	jobDesk
	target string
}

func (l linked) ReadDir(orchestrator.ConversationID, string) (string, error) { return l.target, nil }

// The user moves a project and leaves a link. The job follows the link after the user chose the folder again, even by the
// same path.
func TestAReplyWithTheSameFolderFollowsItsLink(t *testing.T) {
	withJobs(t, func(r *rig) {
		for _, step := range []string{"/cron every hour look", "[✅ Add]", "[✏️ Edit]", "[Project]", "> /src/shop",
			"[✏️ Edit]", "[Project]"} {
			r.do(step)
		}
		r.o.Jobs = linked{r.o.Jobs, "/data/shop"}
		r.do("> /src/shop")
		all, err := r.o.Jobs.Jobs(r.t.Context(), orchestrator.ConversationID{Chat: owner})
		if err != nil || len(all) != 1 || all[0].Job.Dir != "/data/shop" {
			t.Errorf("%+v, %v", all, err)
		}
	})
}
