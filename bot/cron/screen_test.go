package cron

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/heartbeat"
	"ductor/internal/store"
	"ductor/lang"
	"ductor/orchestrator"
)

var updateGolden = flag.Bool("update", false, "write the golden files instead of comparing with them")

const (
	owner = 7
	group = -100
)

// rig is a Screen with jobs in a real store, and a chat. Its clock starts on Saturday, 1 January 2000.
type rig struct {
	*Screen
	t         *testing.T
	scheduler *heartbeat.Scheduler
	runner    *runnerFake
	models    *modelsFake

	out     strings.Builder // transcript of the chat
	said    string          // text of the bot's last message
	answer  string          // answer to the last press
	prompts []string        // replies that the screen did not handle
	pages   int
	message int // the last one, with its buttons
	buttons tgapi.Keyboard
}

// modelsFake offers one model.
type modelsFake struct {
	choose func(context.Context, cli.Agent, cli.ModelID, cli.Effort) error
	back   func() tgapi.Page
}

func (f *modelsFake) ChooseModel(_ context.Context, _ orchestrator.ConversationID, current orchestrator.Status,
	choose func(context.Context, cli.Agent, cli.ModelID, cli.Effort) error, back func() tgapi.Page) (tgapi.Page,
	error) {
	f.choose, f.back = choose, back
	return tgapi.Page{
		Text:     fmt.Sprintf("Now: %q %q %q", current.Agent, current.Model, current.Effort),
		Keyboard: tgapi.Keyboard{{{Text: "opus", Data: "models:opus"}, {Text: "Close", Data: "models:close"}}},
	}, nil
}

func (f *modelsFake) press(ctx context.Context, data string) (tgapi.Answer, error) {
	if data == "opus" {
		if err := f.choose(ctx, "claude", "opus", "high"); err != nil {
			return tgapi.Answer{}, err
		}
	}
	return tgapi.Answer{Edit: f.back()}, nil
}

// runnerFake ends turns at once, each with the next answer. It repeats the last answer.
type runnerFake struct {
	db      *store.DB
	answers []orchestrator.Outcome
	turns   map[cli.TurnID]orchestrator.Turn
}

func (f *runnerFake) SubmitOrder(ctx context.Context, o orchestrator.Order) error {
	if _, ok := f.turns[o.Turn]; ok {
		return nil
	}
	out := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	t := orchestrator.Turn{ID: o.Turn, State: out.State, Prompt: o.Prompt, Wants: o.Wants, Outcome: out}
	f.turns[o.Turn] = t
	return f.db.EnqueueTurn(ctx, t)
}

func (f *runnerFake) Turn(_ context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	if t, ok := f.turns[id]; ok {
		return t, nil
	}
	return orchestrator.Turn{}, orchestrator.ErrNoTurn
}

func (f *runnerFake) Busy(context.Context, orchestrator.ConversationID) (bool, error) {
	return false, nil
}

type silent struct{}

func (silent) Report(context.Context, heartbeat.Report) error { return nil }

func withJobs(t *testing.T, test func(r *rig)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), filepath.Join(dir, "ductor.db"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		r := &rig{t: t, models: &modelsFake{}, runner: &runnerFake{db: db, turns: map[cli.TurnID]orchestrator.Turn{},
			answers: []orchestrator.Outcome{{State: orchestrator.TurnDone, Text: "fine", CostUSD: 0.25}}}}
		r.scheduler = heartbeat.New(heartbeat.Options{Store: db, Runner: r.runner, Notifier: silent{}, Now: time.Now,
			Zone:  time.UTC,
			NewID: func() string { return "id" }, Logger: slog.New(slog.DiscardHandler),
			Stale: 3 * time.Hour, Directory: func(path string) (string, error) {
				if path == "/gone/too" {
					return "", orchestrator.ErrNotADir
				}
				return path, nil
			}})
		r.Screen = New(Options{Jobs: r.scheduler, Journal: bottest.NewJournal(), Models: r.models, Now: time.Now,
			Log: slog.New(slog.DiscardHandler)})
		test(r)
		synctest.Wait()
	})
}

// do performs one step of a script: "/cron …" sends a command, "[…]" presses a button of the last message, "> …"
// replies to it, and "+1h" advances the clock. The scheduler runs after each step.
func (r *rig) do(step string) {
	r.t.Helper()
	fmt.Fprintf(&r.out, "──── %s\n", step)
	switch {
	case strings.HasPrefix(step, "["):
		r.press(r.data(strings.Trim(step, "[]")))
	case strings.HasPrefix(step, "> "):
		r.reply(step[2:])
	case strings.HasPrefix(step, "+"):
		d, err := time.ParseDuration(step[1:])
		if err != nil {
			r.t.Fatal(err)
		}
		for end := time.Now().Add(d); time.Now().Before(end); {
			time.Sleep(min(time.Minute, time.Until(end)))
			r.scheduler.Tick(context.Background())
		}
	default:
		page, err := r.Command(r.t.Context(), by(owner), strings.TrimSpace(strings.TrimPrefix(step, "/cron")))
		if err != nil {
			r.t.Fatal(err)
		}
		r.send(page)
	}
	time.Sleep(time.Second)
	synctest.Wait()
	r.scheduler.Tick(context.Background())
}

// by returns the owner in a chat.
func by(chat int64) orchestrator.Press {
	return orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: chat}, Person: owner,
		Role: orchestrator.RoleUser}
}

func (r *rig) data(name string) string {
	r.t.Helper()
	for _, row := range r.buttons {
		for _, b := range row {
			if b.Text == name {
				return b.Data
			}
		}
	}
	r.t.Fatalf("there is no button %q in %+v\n%s", name, r.buttons, r.out.String())
	return ""
}

func (r *rig) press(data string) { r.t.Helper(); r.pressIn(owner, data) }

// pressIn presses a button of the last message in a chat.
func (r *rig) pressIn(chat int64, data string) {
	r.t.Helper()
	action, what, _ := strings.Cut(data, ":")
	a, err := tgapi.Answer{}, error(nil)
	if action == Action {
		a, err = r.Press(r.t.Context(), by(chat), r.message, what)
	} else {
		a, err = r.models.press(r.t.Context(), what)
	}
	if r.answer = a.Text; err != nil {
		r.answer = err.Error()
	}
	for _, m := range a.Messages {
		var c message.Content
		if err := json.Unmarshal(m.Content, &c); err != nil {
			r.t.Fatal(err)
		}
		r.send(tgapi.Page{Text: c.Text.Text, Keyboard: c.Keyboard})
	}
	if r.answer != "" {
		fmt.Fprintf(&r.out, "(%s)\n", r.answer)
	}
	if a.Edit.Text != "" {
		r.buttons = a.Edit.Keyboard
		r.show("edit", a.Edit)
	}
}

func (r *rig) reply(text string) {
	answered := false
	state := r.Reply(r.t.Context(), Reply{By: by(owner), To: r.message, Text: text}, func(p tgapi.Page, _ bool) {
		answered = true
		r.send(p)
	})
	if state == Prompt {
		r.prompts = append(r.prompts, text)
	}
	if answered == (state == Prompt) {
		r.t.Errorf("a reply that is in state %v is answered: %v", state, answered)
	}
}

// send shows a page in a new message.
func (r *rig) send(p tgapi.Page) {
	r.pages++
	if r.said = p.Text; len(p.Keyboard) > 0 {
		r.message, r.buttons = 9000+r.pages, p.Keyboard
	}
	r.show("new", p)
}

func (r *rig) show(how string, p tgapi.Page) {
	fmt.Fprintf(&r.out, "%s:\n", how)
	for line := range strings.Lines(p.Text) {
		r.out.WriteString(strings.TrimRight("  "+strings.TrimSuffix(line, "\n"), " ") + "\n")
	}
	for _, row := range p.Keyboard {
		r.out.WriteString(" ")
		for _, b := range row {
			if len(b.Data) > tgapi.DataLimit || b.Data == "" {
				r.t.Errorf("button %+v", b)
			}
			fmt.Fprintf(&r.out, " [%s]", b.Text)
		}
		r.out.WriteString("\n")
	}
}

// After a tap on another message, the user's next message is no value for the field that the first message asks for.
func TestAnotherButtonEndsTheWaitForAField(t *testing.T) {
	expected := func(r *rig) int {
		id, _, err := message.Expected(r.t.Context(), r.o.Journal.(message.Journal), by(owner))
		if err != nil {
			r.t.Fatal(err)
		}
		return id
	}
	withJobs(t, func(r *rig) {
		for _, step := range []string{"/cron every day at 9 look", "[✏️ Change]", "[⚙️ More]", "[Quiet hours]"} {
			r.do(step)
		}
		if got := expected(r); got != r.message {
			t.Fatalf("message %d expects the hours", got)
		}
		r.do("> whenever")
		if got := expected(r); got != r.message {
			t.Errorf("after a bad value, message %d expects the hours", got)
		}
		for _, step := range []string{"/cron every day at 10 look", "[✏️ Change]", "[⚙️ More]", "[Retries]"} {
			r.do(step)
		}
		if got := expected(r); got != 0 {
			t.Errorf("after a tap on another message, message %d expects the hours", got)
		}
		r.do("[‹ Back]")
		r.do("[Name]")
		if got := expected(r); got != r.message {
			t.Errorf("message %d expects the name", got)
		}
	})
}

func (r *rig) undo(role orchestrator.UserRole, question int, update int64) string {
	r.t.Helper()
	press := by(owner)
	press.Role = role
	text, err := r.Undo(r.t.Context(), press, question, update)
	if err != nil {
		r.t.Error(err)
	}
	return text
}

// TestUndo tests that a field gets back the value before a text, also if the user has added the job since. A field that
// has changed again, and a text that changed nothing, stay as they are.
func TestUndo(t *testing.T) {
	const draft, saved = "/cron every day at 9 look", "[✅ Add]"
	for name, c := range map[string]struct {
		steps []string
		text  string
		then  []string
		says  string
	}{
		"prompt":     {[]string{"[Prompt]"}, "fix the login", nil, "The job look is as before. Prompt: look"},
		"schedule":   {[]string{"[Schedule]"}, "every hour", nil, "is as before. Schedule: every day at 9"},
		"project":    {[]string{"[Project]"}, "/src/app", nil, "Project: same as the chat"},
		"name":       {[]string{"[⚙️ More]", "[Name]"}, "fix the login", nil, "The job look is as before. Name: look"},
		"time limit": {[]string{"[⚙️ More]", "[Time limit]"}, "2h", nil, "Time limit: same as the agent"},
		"quiet":      {[]string{"[⚙️ More]", "[Quiet hours]"}, "22:00 to 7:00", nil, "is as before. Quiet hours: none"},
		"rules":      {[]string{"[⚙️ More]", "[Rules]"}, "Bash(git status *)", nil, "is as before. Rules: none"},
		"changed since": {[]string{"[⚙️ More]", "[Time limit]"}, "2h",
			[]string{"[✏️ Edit]", "[⚙️ More]", "[Time limit]", "[1 h]"}, "so I left it as it is. Time limit: 1 h"},
		"the same value": {[]string{"[Prompt]"}, "look", nil, "so I left it as it is. Prompt: look"},
		"gone": {[]string{"[Prompt]"}, "fix", []string{"[🗑 Delete]", "[🗑 Yes, delete it]"},
			"no longer exists"},
	} {
		for _, add := range []string{"before", "after", "never"} {
			if add != "before" && c.then != nil {
				continue
			}
			t.Run(name+", added "+add, func(t *testing.T) {
				withJobs(t, func(r *rig) {
					r.do(draft)
					if add == "before" {
						r.do(saved)
						r.do("[✏️ Edit]")
					} else {
						r.do("[✏️ Change]")
					}
					for _, step := range c.steps {
						r.do(step)
					}
					question := r.message
					r.do("> " + c.text)
					if add == "after" {
						r.do(saved)
					}
					for _, step := range c.then {
						r.do(step)
					}
					if got := r.undo(orchestrator.RoleUser, question, 1); got != "" {
						t.Errorf("another text changed it: %q", got)
					}
					if got := r.undo(orchestrator.RoleMember, question, 0); got != "" {
						t.Errorf("a member may change it: %q", got)
					}
					got, again := r.undo(orchestrator.RoleUser, question, 0), r.undo(orchestrator.RoleUser, question, 0)
					if !strings.Contains(got, c.says) || again != got {
						t.Errorf("it says %q, and again %q", got, again)
					}
				})
			})
		}
	}
}

// Each field that a text can set can also be restored.
func TestEachTypedFieldCanBeRestored(t *testing.T) {
	for _, f := range fields(lang.Printer{}) {
		if (f.read == nil) != (f.part == nil) {
			t.Errorf("field %s", f.label)
		}
	}
}

// TestScreens compares each page of /cron with its golden file.
func TestScreens(t *testing.T) {
	for name, script := range map[string][]string{
		"add": {"/cron", "/cron every weekday at 8:30 Europe/Berlin look at the CI", "[✅ Add]", "[‹ All jobs]",
			"[⏰ 1. look at the CI]",
			"/cron 0 30 8 * * 1-5 check the disk", "[✖ Cancel]", "/cron"},
		"understood wrongly": {"/cron now and then look", "/cron every day at 9", "/cron on friday at 9 look",
			"/cron every weekday look at the CI", "/cron every 5s look",
			"/cron at 1999-01-01 08:00 look", "/cron every hour look", "[✏️ Change]", "[Schedule]", "> whenever",
			"> every 3 hours", "[✅ Add]"},
		"run": {"/cron every 2 hours look", "[✅ Add]", "[🚀 Run now]", "[📜 History]", "+121m", "[↻ Refresh]", "[‹ Back]",
			"[⏸ Pause]", "+4h", "[▶ Resume]"},
		"edit": {"/cron every day at 9 Asia/Tokyo look at the CI", "[✅ Add]", "[✏️ Edit]", "[Schedule]", "> at noon",
			"> every day at 10",
			"[✏️ Edit]", "[Prompt]", "> look at it twice", "[✏️ Edit]", "[Project]", "> /gone/too", "> /src/app",
			"[✏️ Edit]", "[Project]", "[‹ Back]", "[Project]", "[Same as the chat]",
			"[⚙️ More]", "[Session]", "[shared with the chat]", "[Session]", "[its own]",
			"[Sandbox]", "[a container]", "[Time limit]", "[‹ Back]", "[Time limit]", "> 3 hours", "> forever",
			"> 90 minutes",
			"[✏️ Edit]", "[⚙️ More]", "[Quiet hours]", "> 22:00 to 7:00",
			"[✏️ Edit]", "[⚙️ More]", "[Quiet hours]", "[A due run is skipped]",
			"[Missed runs]", "[run one by one]", "[Overlap]", "[waits for the previous run]", "[Retries]", "[3]",
			"[‹ Back]", "[‹ Done]"},
		"rights": {"/cron every day at 9 look", "[✏️ Change]", "[⚙️ More]", "[Permissions]", "[accept-edits]",
			"[Rules]", "> Bash(rm -rf $HOME)", "> Bash(git status *)", "[✅ Add]", "[✏️ Edit]", "[⚙️ More]", "[Tools]",
			"> Read",
			"[✏️ Edit]", "[⚙️ More]", "[Rules]", "[None]", "[‹ Back]", "[‹ Done]"},
		"model": {"/cron every day at 9 look", "[✏️ Change]", "[Model]", "[Choose…]", "[opus]", "[‹ Done]", "[✅ Add]",
			"[✏️ Edit]", "[Model]", "[✓ Choose…]", "[Close]", "[Model]", "[Same as the chat]"},
		"delete": {"/cron every day at 9 look", "[✅ Add]", "[🗑 Delete]", "[‹ Keep it]", "[🗑 Delete]",
			"[🗑 Yes, delete it]", "/cron"},
		"once": {"/cron in 20 minutes look", "[✅ Add]", "+30m", "/cron"},
	} {
		t.Run(name, func(t *testing.T) {
			withJobs(t, func(r *rig) {
				for _, step := range script {
					r.do(step)
				}
				golden(t, filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden"), r.out.String())
			})
		})
	}
}

// /status shows the time at which the next prompt runs again after a limit, in the chat's language and on the user's
// clock.
func TestLaterLines(t *testing.T) {
	for l, want := range map[lang.Language]string{
		"en": "A prompt runs again at %s; /cron lists it",
		"de": "Ein Prompt läuft noch einmal: %s; er steht in /cron",
		"zh": "有一条提示将在 %s 再次运行；可在 /cron 中看到",
	} {
		withJobs(t, func(r *rig) {
			choices, err := lang.OpenChoices(t.Context(), storedLanguage{l}, 0)
			if err != nil {
				t.Error(err)
			}
			r.o.Lang = choices
			in := by(owner).Conversation
			r.do("/cron in 20 minutes look")
			r.press(r.buttons[0][0].Data) // adds the job
			if lines := r.LaterLines(r.t.Context(), in); len(lines) > 0 {
				t.Errorf("%s: without a later run it shows %q", l.Name(), lines)
			}
			now := time.Now()
			for id, after := range map[cli.TurnID]time.Duration{"second": time.Hour, "first": 0, "third": time.Hour} {
				turn := orchestrator.Turn{ID: id, Prompt: orchestrator.Prompt{Conversation: in, Text: "look"}}
				job := turn.RepeatedAt(now.Add(4*time.Hour+after), "", "")
				if _, err := r.scheduler.AddJob(r.t.Context(), job); err != nil {
					t.Error(err)
				}
			}
			want := fmt.Sprintf(want, now.Add(4*time.Hour).Local().Format("15:04"))
			if lines := r.LaterLines(r.t.Context(), in); len(lines) != 1 || lines[0] != want {
				t.Errorf("%s: %q, want %q", l.Name(), lines, want)
			}
		})
	}
}

// storedLanguage implements lang.Store.
type storedLanguage struct{ lang.Language }

func (s storedLanguage) Languages(context.Context) ([]lang.Choice, error) {
	return []lang.Choice{{ID: owner, Chosen: s.Language}}, nil
}

func (storedLanguage) SaveLanguage(context.Context, lang.Choice) error { return nil }

// TestRetryScreens shows a job between two attempts of its first run, and afterwards.
func TestRetryScreens(t *testing.T) {
	withJobs(t, func(r *rig) {
		r.runner.answers = []orchestrator.Outcome{
			{State: orchestrator.TurnFailed, Failure: "The network is down."},
			{State: orchestrator.TurnFailed, Failure: "The network is still down."},
			{State: orchestrator.TurnDone, Text: "fine"},
		}
		for _, step := range []string{"/cron every 2 hours Asia/Tokyo look", "[✏️ Change]", "[⚙️ More]", "[Retries]",
			"[2]", "[‹ Back]", "[‹ Done]", "[✅ Add]", "[🚀 Run now]", "/cron", "[⏰ 1. look]", "[📜 History]", "+1m",
			"[↻ Refresh]", "+5m", "[↻ Refresh]", "[‹ Back]"} {
			r.do(step)
		}
		golden(t, filepath.Join("testdata", "retry.golden"), r.out.String())
	})
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *updateGolden {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}
