package bot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"ductor/bot/cron"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/lang"
	"ductor/orchestrator"
)

// jobsFake has one job in each conversation. Methods that it lacks panic.
type jobsFake struct {
	orchestrator.Jobs
	job  orchestrator.Job
	fail error // returned when listing jobs
}

// jobsOf implements orchestrator.Jobs, which has a method with the name of a field.
type jobsOf struct{ *jobsFake }

func (f jobsOf) Jobs(context.Context, orchestrator.ConversationID) ([]orchestrator.JobStatus, error) {
	return []orchestrator.JobStatus{{Job: f.job}}, f.fail
}

func (f jobsOf) Job(context.Context, orchestrator.JobID, orchestrator.ConversationID) (orchestrator.JobStatus, error) {
	return orchestrator.JobStatus{Job: f.job}, nil
}

func (f jobsOf) EditJob(_ context.Context, _ orchestrator.JobID, _ orchestrator.Press, change func(*orchestrator.Job) error) (orchestrator.JobStatus, error) {
	err := change(&f.job)
	return orchestrator.JobStatus{Job: f.job}, err
}

func withJobs(t *testing.T, test func(t *testing.T, r *inboundRig, jobs *jobsFake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		jobs := &jobsFake{job: orchestrator.Job{ID: "chat/one", Name: "look", Prompt: "look"}}
		r := newInboundRig(t, jobsOf{jobs})
		test(t, r, jobs)
		synctest.Wait()
		r.end()
	})
}

// choose presses the button with a label in the last edited message.
func (r *inboundRig) choose(t *testing.T, name string) fakeNotice {
	t.Helper()
	k := r.journal.lastNotice(t).Keyboard
	if n := len(r.voice.edits); n > 0 {
		k = r.voice.edits[n-1].Keyboard
	}
	i := slices.IndexFunc(k, func(row []tgapi.Button) bool { return slices.Contains(buttonNames(tgapi.Keyboard{row}), name) })
	if i < 0 {
		t.Fatalf("there is no button %q in %q", name, buttonNames(k))
	}
	j := slices.IndexFunc(k[i], func(b tgapi.Button) bool { return b.Text == name })
	r.send(r.press(k[i][j].Data, 9))
	synctest.Wait()
	return r.voice.edits[len(r.voice.edits)-1]
}

// replyTo returns the fields of a message that replies to a message of the bot.
func replyTo(message int) map[string]any {
	return map[string]any{"reply_to_message": map[string]any{"message_id": message, "date": 1,
		"from": map[string]any{"id": 42, "is_bot": true, "first_name": "ductor"}, "chat": map[string]any{"id": owner, "type": "private"}}}
}

// TestAJobIsChangedInTheChat: by buttons, by a reply, and by the model menu, which returns to the job.
func TestAJobIsChangedInTheChat(t *testing.T) {
	withJobs(t, func(t *testing.T, r *inboundRig, jobs *jobsFake) {
		r.desk.menu = menuFixture()
		r.send(r.text("/cron"))
		synctest.Wait()
		for _, name := range []string{"⏰ 1. look", "✏️ Edit", "Model", "Choose…", "✓ Claude", "✓ Opus 4"} {
			r.choose(t, name)
		}
		if e := r.choose(t, "high"); !strings.Contains(e.Text, "Model: Claude · opus · high") || r.voice.lastAnswer() != "Claude · opus · high" || jobs.job.Effort != "high" {
			t.Errorf("after the model is chosen: %q, answer %q", e.Text, r.voice.lastAnswer())
		}
		for _, name := range []string{"Model", "✓ Choose…"} {
			r.choose(t, name)
		}
		if e := r.choose(t, "Close"); !strings.Contains(e.Text, "Model: Claude · opus · high") {
			t.Errorf("after the menu is closed: %q", e.Text)
		}
		r.choose(t, "⚙️ More")
		r.choose(t, "Name")
		r.send(r.text("another name", replyTo(9)))
		synctest.Wait()
		r.send(r.text("a prompt", replyTo(9)))
		synctest.Wait()
		if got := r.desk.Texts(); jobs.job.Name != "another name" || !slices.Contains(r.voice.Signs(), "unbutton 7/0 9") || len(got) != 1 || !strings.HasSuffix(got[0], "a prompt") {
			t.Errorf("the job is %q, prompts %q, signs %q", jobs.job.Name, got, r.voice.Signs())
		}
	})
}

// TestACommandEndsTheWaitForAField: the user's next message is a prompt, but a reply is still the field.
func TestACommandEndsTheWaitForAField(t *testing.T) {
	for _, command := range []string{"/status", "/unknown", "/abort", "/new"} {
		withJobs(t, func(t *testing.T, r *inboundRig, jobs *jobsFake) {
			r.send(r.text("/cron"))
			synctest.Wait()
			for _, name := range []string{"⏰ 1. look", "✏️ Edit", "Prompt"} {
				r.choose(t, name)
			}
			r.send(r.text(command))
			synctest.Wait()
			r.send(r.text("fix the login"))
			r.settle()
			if got := r.desk.Texts(); jobs.job.Prompt != "look" || len(got) != 1 || got[0] != "fix the login" {
				t.Errorf("after %s: the job's prompt is %q, prompts %q", command, jobs.job.Prompt, got)
			}
			r.send(r.text("look twice", replyTo(9)))
			synctest.Wait()
			if jobs.job.Prompt != "look twice" {
				t.Errorf("after %s: a reply does not count, the job's prompt is %q", command, jobs.job.Prompt)
			}
		})
	}
}

// TestTheTapOfNoPromptRestoresAField: the text that became the field runs as a prompt.
func TestTheTapOfNoPromptRestoresAField(t *testing.T) {
	withJobs(t, func(t *testing.T, r *inboundRig, jobs *jobsFake) {
		r.send(r.text("/cron"))
		synctest.Wait()
		for _, name := range []string{"⏰ 1. look", "✏️ Edit", "Prompt"} {
			r.choose(t, name)
		}
		r.send(r.text("fix the login"))
		synctest.Wait()
		if jobs.job.Prompt != "fix the login" {
			t.Errorf("the job's prompt is %q", jobs.job.Prompt)
		}
		r.send(r.press(r.journal.lastNotice(t).Keyboard[0][0].Data, 10))
		r.settle()
		e := r.voice.edits[len(r.voice.edits)-1]
		restored := jobs.job.Prompt == "look" && strings.HasSuffix(e.Text, "as before. Prompt: look")
		if got := r.desk.Texts(); !restored || len(got) != 1 {
			t.Errorf("the job's prompt is %q, prompts %q, and it says %q", jobs.job.Prompt, got, e.Text)
		}
	})
}

// TestTheTapOfNoPromptEndsTheWaitForAField: the user's next messages are prompts, although the bot rejected the value.
func TestTheTapOfNoPromptEndsTheWaitForAField(t *testing.T) {
	withJobs(t, func(t *testing.T, r *inboundRig, _ *jobsFake) {
		r.send(r.text("/cron"))
		synctest.Wait()
		for _, name := range []string{"⏰ 1. look", "✏️ Edit", "⚙️ More", "Time limit"} {
			r.choose(t, name)
		}
		said := len(r.journal.said())
		r.send(r.text("fix the login"))
		synctest.Wait()
		refused := r.journal.lastNotice(t)
		if got := r.journal.said()[said:]; len(got) != 1 || !strings.HasPrefix(refused.Text, "Write a time limit") {
			t.Errorf("a value that is no time limit is answered %q", got)
		}
		r.send(r.press(refused.Keyboard[0][0].Data, 10))
		synctest.Wait()
		if e := r.voice.edits[len(r.voice.edits)-1]; e.Text != "It runs as a prompt." {
			t.Errorf("it says %q", e.Text)
		}
		r.send(r.text("and the logout"))
		r.settle()
		if got := r.desk.Texts(); !slices.Equal(got, []string{"fix the login", "and the logout"}) {
			t.Errorf("prompts %q", got)
		}
	})
}

// TestTheButtonOfARunShowsItsJob: in a message of its own, because the text of the run stays.
func TestTheButtonOfARunShowsItsJob(t *testing.T) {
	withJobs(t, func(t *testing.T, r *inboundRig, jobs *jobsFake) {
		r.send(r.press(cron.ShowButton(lang.Printer{}, jobs.job.ID).Data, 9))
		synctest.Wait()
		if l := r.journal.lastNotice(t); !strings.Contains(l.Text, "look") || len(r.voice.edits) > 0 {
			t.Errorf("it shows %q, edits %v", l.Text, r.voice.edits)
		}
	})
}

// TestJobsAreForThoseWhoAreListed: a member of a group may not see, run or change them.
func TestJobsAreForThoseWhoAreListed(t *testing.T) {
	const guest = 99
	inbound(t, func(t *testing.T, r *inboundRig) { // without jobs, a press that passed the check would get another answer
		r.configure(func(o *updates.RouterOptions) {
			setPolicy(o, admitAll)
		})
		for _, op := range "purefvwdDaxohln" {
			r.send(r.pressIn(group, guest, cron.Action+":"+string(op)+":key:0"))
			synctest.Wait()
			if got := r.voice.lastAnswer(); got != (lang.Printer{}).Text("common.not-for-members") {
				t.Errorf("%c by a guest is answered %q", op, got)
			}
		}
		r.send(r.text("/cron every day at 9 mine", inGroup(), map[string]any{"from": map[string]any{"id": guest, "first_name": "Guest"}}))
		synctest.Wait()
		if l := r.journal.lastNotice(t); l.Text != (lang.Printer{}).Text("common.not-for-members") {
			t.Errorf("a guest's request is answered %q", l.Text)
		}
	})
}

// TestCronWithoutWhatItNeeds: it explains what is missing.
func TestCronWithoutWhatItNeeds(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.send(r.text("/cron"), r.press("j:o:x:", 9))
		synctest.Wait()
		if l := r.journal.lastNotice(t); l.Text != "ductor keeps no jobs here." || r.voice.lastAnswer() != (lang.Printer{}).Text("common.stale-button") {
			t.Errorf("notice %q, answer %q", l.Text, r.voice.lastAnswer())
		}
	})
	withJobs(t, func(t *testing.T, r *inboundRig, jobs *jobsFake) {
		jobs.fail = errors.New("disk full")
		r.send(r.text("/cron"), r.press("j:o:x:", 9))
		synctest.Wait()
		if l := r.journal.lastNotice(t); !strings.Contains(l.Text, "The log says why") || !strings.Contains(r.voice.lastAnswer(), "didn't work") {
			t.Errorf("notice %q, answer %q", l.Text, r.voice.lastAnswer())
		}
	})
}
