package bot

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

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/heartbeat"
	"ductor/internal/store"
	"ductor/orchestrator"
)

var updateGolden = flag.Bool("update", false, "write the golden files instead of comparing with them")

// cronRig is the inbound side of a bot over jobs that are really kept. Its clock starts on Saturday, 1 January 2000.
type cronRig struct {
	*inboundRig
	t         *testing.T
	db        *store.DB
	scheduler *heartbeat.Scheduler
	runner    *runnerFake

	out     strings.Builder // what was seen in the chat
	letters int
	edits   int
	answers int
	message int // that was shown last, with its buttons
	buttons tgapi.Keyboard
}

// runnerFake has turns end at once, each with the next answer; the last one stays.
type runnerFake struct {
	answers []orchestrator.Outcome
	turns   map[cli.TurnID]orchestrator.Turn
}

func (f *runnerFake) SubmitOrder(_ context.Context, o orchestrator.Order) error {
	if _, ok := f.turns[o.Turn]; !ok {
		out := f.answers[0]
		if len(f.answers) > 1 {
			f.answers = f.answers[1:]
		}
		f.turns[o.Turn] = orchestrator.Turn{ID: o.Turn, State: out.State, Outcome: out}
	}
	return nil
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

type nobody struct{}

func (nobody) Report(context.Context, heartbeat.Report) error { return nil }

func withJobs(t *testing.T, test func(r *cronRig)) {
	t.Helper()
	dir := t.TempDir()
	inbound(t, func(t *testing.T, in *inboundRig) {
		db, err := store.Open(t.Context(), filepath.Join(dir, "ductor.db"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		in.desk.menu = menuFixture()
		r := &cronRig{inboundRig: in, t: t, db: db, runner: &runnerFake{turns: map[cli.TurnID]orchestrator.Turn{},
			answers: []orchestrator.Outcome{{State: orchestrator.TurnDone, Text: "fine", CostUSD: 0.25}}}}
		r.scheduler = heartbeat.New(heartbeat.Options{Store: db, Runner: r.runner, Notifier: nobody{}, Now: time.Now, Zone: time.UTC,
			NewID: func() string { return "id" }, Logger: slog.New(slog.DiscardHandler)})
		r.commands.crons.jobs = heartbeat.NewJobs(r.scheduler, heartbeat.JobsOptions{Stale: 3 * time.Hour, Directory: func(path string) (string, error) {
			if path == "/gone/too" {
				return "", orchestrator.ErrNotADir
			}
			return path, nil
		}})
		test(r)
		synctest.Wait()
	})
}

// do plays one step of a script: "/…" and other text is said, "[…]" presses a button of the message shown last, "> …" replies
// to it, "+1h" lets time pass, and a look at the clock follows each.
func (r *cronRig) do(step string) {
	r.t.Helper()
	fmt.Fprintf(&r.out, "──── %s\n", step)
	switch {
	case strings.HasPrefix(step, "["):
		r.send(r.press(r.data(strings.Trim(step, "[]")), r.message))
	case strings.HasPrefix(step, "> "):
		r.send(r.text(step[2:], map[string]any{"reply_to_message": map[string]any{"message_id": r.message, "date": 1,
			"from": map[string]any{"id": 42, "is_bot": true, "first_name": "ductor"}, "chat": map[string]any{"id": owner, "type": "private"}}}))
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
		r.send(r.text(step))
	}
	time.Sleep(time.Second)
	synctest.Wait()
	r.scheduler.Tick(context.Background())
	r.see()
}

func (r *cronRig) data(name string) string {
	r.t.Helper()
	for _, row := range r.buttons {
		for _, b := range row {
			if b.Text == name {
				return b.Data
			}
		}
	}
	r.t.Fatalf("there is no button %q in %q\n%s", name, buttonNames(r.buttons), r.out.String())
	return ""
}

// see writes down what is new in the chat.
func (r *cronRig) see() {
	r.journal.mu.Lock()
	letters := r.journal.letters[r.letters:]
	r.journal.mu.Unlock()
	for _, l := range letters {
		r.letters++
		var said fakeLetter
		if err := json.Unmarshal(l.Content, &said); err != nil {
			r.t.Fatal(err)
		}
		if len(said.Keyboard) > 0 {
			r.message = 9000 + r.letters
		}
		r.show("new", said)
	}
	r.voice.mu.Lock()
	edits, answers := r.voice.edits[r.edits:], r.voice.answers[r.answers:]
	r.voice.mu.Unlock()
	for _, a := range answers {
		if r.answers++; a != "" {
			fmt.Fprintf(&r.out, "(%s)\n", a)
		}
	}
	for _, e := range edits {
		r.edits++
		r.message = e.ReplyTo // where the fake keeps the message
		r.show("edit", e)
	}
}

func (r *cronRig) show(how string, l fakeLetter) {
	if how == "edit" || len(l.Keyboard) > 0 {
		r.buttons = l.Keyboard
	}
	fmt.Fprintf(&r.out, "%s:\n", how)
	for line := range strings.Lines(l.Text) {
		r.out.WriteString(strings.TrimRight("  "+strings.TrimSuffix(line, "\n"), " ") + "\n")
	}
	for _, row := range l.Keyboard {
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

// TestCronScreens holds each page of /cron as people see it.
func TestCronScreens(t *testing.T) {
	for name, script := range map[string][]string{
		"add": {"/cron", "/cron every weekday at 8:30 Europe/Berlin look at the CI", "[✅ Add]", "[‹ All jobs]", "[⏰ 1. look at the CI]",
			"/cron 0 30 8 * * 1-5 check the disk", "[✖ Cancel]", "/cron"},
		"understood wrongly": {"/cron now and then look", "/cron every day at 9", "/cron on friday at 9 look", "/cron every weekday look at the CI", "/cron every 5s look",
			"/cron at 1999-01-01 08:00 look", "/cron every hour look", "[✏️ Change]", "[Schedule]", "> whenever", "> every 3 hours", "[✅ Add]"},
		"run": {"/cron every 2 hours look", "[✅ Add]", "[🚀 Run now]", "[📜 History]", "+121m", "[↻ Again]", "[‹ Back]",
			"[⏸ Pause]", "+4h", "[▶ Resume]"},
		"edit": {"/cron every day at 9 Asia/Tokyo look at the CI", "[✅ Add]", "[✏️ Edit]", "[Schedule]", "> at noon", "> every day at 10",
			"[✏️ Edit]", "[Prompt]", "> look at it twice", "[✏️ Edit]", "[Session]", "[that of the chat]", "[Session]", "[one of its own]",
			"[Directory]", "> /gone/too", "> /src/app", "[✏️ Edit]", "[Sandbox]", "[a container]", "[Time limit]", "> 3 hours", "> forever", "> 90 minutes",
			"[✏️ Edit]", "[Quiet hours]", "> 22:00 to 7:00", "[✏️ Edit]", "[Quiet hours]", "[What is due is skipped]",
			"[Missed runs]", "[each is run]", "[Overlap]", "[waits for the one before]", "[Retries]", "[3]", "[‹ Done]"},
		"rights": {"/cron every day at 9 look", "[✏️ Change]", "[Permission]", "[accept-edits]", "[Rules]", "> Bash(rm -rf $HOME)", "> Bash(git status *)",
			"[✅ Add]", "[✏️ Edit]", "[Tools]", "> Read", "[✏️ Edit]", "[Rules]", "[None]", "[‹ Done]"},
		"model": {"/cron every day at 9 look", "[✏️ Change]", "[Model]", "[Choose…]", "[✓ claude]", "[✓ Opus 4]", "[high]", "[‹ Done]", "[✅ Add]",
			"[✏️ Edit]", "[Model]", "[✓ Choose…]", "[Close]", "[Model]", "[As the chat]"},
		"delete": {"/cron every day at 9 look", "[✅ Add]", "[🗑 Delete]", "[‹ Keep it]", "[🗑 Delete]", "[🗑 Yes, delete it]", "/cron"},
		"once":   {"/cron in 20 minutes look", "[✅ Add]", "+30m", "/cron"},
	} {
		t.Run(name, func(t *testing.T) {
			withJobs(t, func(r *cronRig) {
				for _, step := range script {
					r.do(step)
				}
				golden(t, filepath.Join("testdata", "cron", strings.ReplaceAll(name, " ", "-")+".golden"), r.out.String())
			})
		})
	}
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
