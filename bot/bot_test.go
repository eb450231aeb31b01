package bot_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/internal/sim/telegram"
	"ductor/lang"
	"ductor/orchestrator"
)

// botRig is a simulated Telegram, a journal and a desk that outlive the bots.
type botRig struct {
	srv       *telegram.Server
	ann       *telegram.Person
	chat      *telegram.Chat
	journal   *bot.JournalFake
	desk      *bot.DeskFake
	uploads   string
	opts      bot.Options
	log       *lockedBuffer
	snapshots orchestrator.Snapshots // nil: no snapshots are taken
}

// simulated runs a test against the simulated Telegram under a fake clock.
func simulated(t *testing.T, test func(t *testing.T, h *botRig)) {
	t.Helper()
	uploads := filepath.Join(t.TempDir(), "uploads")
	synctest.Test(t, func(t *testing.T) {
		test(t, newHouse(t, uploads))
	})
}

func newHouse(t *testing.T, uploads string) *botRig {
	srv := telegram.New(telegram.Options{})
	t.Cleanup(func() { srv.Close() })
	chat := srv.Private(7, "Ann")
	journal := bot.NewJournalFake()
	h := &botRig{
		srv: srv, chat: chat, ann: chat.Person(), journal: journal, desk: bot.NewDeskFake(journal), uploads: uploads,
		log: &lockedBuffer{},
	}
	h.opts = bot.Options{
		Token: srv.Token(), APIBase: "http://telegram.test", Transport: srv.Client().Transport,
		Journal: journal, UploadsDir: uploads, Owner: 7,
		Allow: updates.Allow{Users: orchestrator.Roster{7: orchestrator.RoleOwner}, Policy: func() updates.Policy {
			return updates.Policy{AllowedGroups: []int64{-100}, Reactions: true, AbortWords: []string{"stop"}}
		}},
		Log: slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	return h
}

// serve runs a bot until the returned function is called, which returns the result of Run.
func (h *botRig) serve(t *testing.T) (b *bot.Bot, stop func() error) {
	t.Helper()
	b, err := bot.New(context.Background(), h.opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx, h.desk) }()
	var once sync.Once
	stop = func() (err error) {
		once.Do(func() {
			cancel()
			err = <-done
			last, end := context.WithTimeout(context.Background(), 5*time.Second)
			defer end()
			if closing := b.Close(last); closing != nil && err == nil {
				err = closing
			}
		})
		return err
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the bot ended with %v", err)
		}
	})
	return b, stop
}

func (h *botRig) await(t *testing.T, part string) telegram.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	m, err := h.chat.AwaitText(ctx, part)
	if err != nil {
		t.Fatalf("the chat never shows %q: %v\n%s", part, err, h.log.String())
	}
	return m
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestPromptAndReceipt(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.serve(t)
		sent := h.ann.Send(h.chat, "fix the tests")
		synctest.Wait()
		if got := h.desk.Texts(); !slices.Equal(got, []string{"fix the tests"}) {
			t.Fatalf("prompts %q", got)
		}
		time.Sleep(time.Second) // no text of an answer replaces the receipt
		m, ok := h.chat.View().Message(sent.ID)
		if !ok || len(m.Reactions) != 1 {
			t.Errorf("no receipt: %+v\n%s", m, h.log)
		}
		if n := h.srv.PendingUpdates(); n != 0 {
			t.Errorf("%d updates are not acknowledged", n)
		}
	})
}

func TestCommandMenuIsPublished(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.serve(t)
		synctest.Wait()
		calls := h.srv.Calls(telegram.Methods("setMyCommands"))
		var codes []string
		for _, call := range calls {
			codes = append(codes, call.Params["language_code"])
			if !call.OK || !strings.Contains(call.Params["commands"], `"abort"`) {
				t.Errorf("call %+v", call)
			}
			if strings.Contains(call.Params["commands"], `"doctor"`) {
				t.Errorf("the menu offers /doctor, which this bot does not know: %+v", call)
			}
		}
		want := []string{""} // English, for all languages without a menu of their own
		for _, l := range lang.Languages()[1:] {
			want = append(want, string(l))
		}
		if !slices.Equal(codes, want) {
			t.Errorf("menus for the languages %q, not %q", codes, want)
		}
	})
}

func TestMessagesSentWhileTheBotIsDown(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		_, stop := h.serve(t)
		synctest.Wait()
		must(t, stop())
		for _, text := range []string{"one", "two", "three"} {
			h.ann.Send(h.chat, text)
		}
		h.serve(t)
		synctest.Wait()
		if got := h.desk.Texts(); !slices.Equal(got, []string{"one", "two", "three"}) {
			t.Errorf("prompts %q: each once, in order", got)
		}
	})
}

func TestFilesReachTheDisk(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.serve(t)
		png := "\x89PNG\r\n\x1a\n0000"
		h.ann.SendAlbum(h.chat, []telegram.File{
			{Name: "a.png", MIME: "image/png", Data: []byte(png)}, {Name: "b.png", MIME: "image/png", Data: []byte(png + "b")},
		}, telegram.WithCaption("compare"))
		h.ann.SendDocument(h.chat, telegram.File{Name: "../../etc/pass wd", MIME: "text/plain", Data: []byte("secret")})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		prompts := h.desk.Prompts()
		if len(prompts) != 2 {
			t.Fatalf("%d prompts, want the album and the document", len(prompts))
		}
		if p := prompts[0]; p.Text != "compare" || len(p.Attachments) != 2 || !p.Attachments[0].Image || len(p.Updates) != 2 {
			t.Errorf("album %+v", p)
		}
		doc := prompts[1].Attachments[0]
		if doc.Image || doc.Name != "pass wd" || filepath.Dir(doc.Path) != filepath.Join(h.uploads, "7_0") {
			t.Errorf("document %+v", doc)
		}
		data, err := os.ReadFile(doc.Path)
		if err != nil || string(data) != "secret" {
			t.Errorf("content %q, %v", data, err)
		}
		err = filepath.WalkDir(h.uploads, func(path string, d fs.DirEntry, err error) error {
			info, _ := d.Info()
			if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; info.Mode().Perm() != want {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestFilesThatCannotBeHad(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.serve(t)
		h.ann.SendDocument(h.chat, telegram.File{Name: "big.bin", Data: make([]byte, telegram.MaxDownload+1)})
		h.await(t, "big.bin is too large: I can fetch at most 20 MB. The agent didn't get it.")

		h.srv.Inject(telegram.Fault{Method: "file", Kind: telegram.DropBefore, Times: 2})
		h.ann.SendDocument(h.chat, telegram.File{Name: "later.txt", Data: []byte("x")}, telegram.WithCaption("comes"))
		time.Sleep(time.Minute)
		if got := h.desk.Texts(); !slices.Equal(got, []string{"comes"}) {
			t.Errorf("prompts %q: a broken connection is tried again", got)
		}
		fault := h.srv.Inject(telegram.Fault{Method: "file", Kind: telegram.ServerError, Times: telegram.Always})
		h.ann.SendDocument(h.chat, telegram.File{Name: "never.txt", Data: []byte("x")})
		h.await(t, "couldn't fetch this file")
		fault.Remove()
		if strings.Contains(h.log.String(), h.srv.Token()) {
			t.Error("the token is in the log")
		}
	})
}

func TestASlowFileHoldsUpItsOwnConversationOnly(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.desk.SetRunning(true)
		h.serve(t)
		team := h.srv.Supergroup(-100, "Team")
		h.srv.Inject(telegram.Fault{Method: "file", Kind: telegram.Hang, Times: telegram.Always})
		h.ann.SendDocument(h.chat, telegram.File{Name: "slow.txt", Data: []byte("x")})
		synctest.Wait()
		start := time.Now()
		h.ann.Send(h.chat, "after the file")
		h.ann.Send(h.chat, "/status")
		h.ann.Send(team, "/status")
		h.await(t, "Claude")
		synctest.Wait()
		if took := time.Since(start); took > time.Second {
			t.Errorf("commands waited %s for a file", took)
		}
		if m, ok := team.View().Find("Claude"); !ok || m.ReplyTo == 0 {
			t.Errorf("the group was not answered: %+v", team.View())
		}
		h.ann.Send(h.chat, "/abort")
		h.await(t, "2 waiting messages will not run")
		synctest.Wait()
		if got := h.desk.Texts(); len(got) > 0 {
			t.Errorf("prompts %q ran after the abort", got)
		}
		if open := h.journal.Open(); len(open) > 0 {
			t.Errorf("updates %v are open", open)
		}
		if said := strings.Join(h.journal.Said(), "\n"); strings.Contains(said, "couldn't fetch") {
			t.Errorf("a file that was dropped is not a file that failed:\n%s", said)
		}
	})
}

func TestModelMenu(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.desk.SetMenu(testMenu())
		h.serve(t)
		h.ann.Send(h.chat, "/model")
		menu := h.await(t, "Which agent should answer?")
		if !strings.Contains(menu.Text, "Gemini: not logged in. Run gemini once.") || menu.HasButton("Gemini") {
			t.Errorf("an agent that cannot be used is named with the reason, not offered:\n%s", menu.Text)
		}
		press := func(m telegram.Message, name string) string {
			t.Helper()
			a, err := h.ann.Press(t.Context(), m, name)
			if err != nil {
				t.Fatalf("press %q: %v\n%s", name, err, h.chat.Transcript())
			}
			synctest.Wait()
			return a.Text
		}
		press(menu, "✓ Claude")
		models := h.await(t, "Which model of Claude?")
		if models.ID != menu.ID || !models.HasButton("✓ Opus") || !models.HasButton("‹ Back") {
			t.Errorf("the menu moves on in one message, the current model marked: %+v", models)
		}
		press(models, "Sonnet")
		efforts := h.await(t, "How hard")
		press(efforts, "high")
		done := h.await(t, "Your next message goes to Claude · sonnet · high")
		if len(done.Keyboard) > 0 {
			t.Error("the buttons stay although all is chosen")
		}
		if calls := h.desk.Calls(); !slices.Equal(calls, []string{"model 7/0 claude/sonnet high"}) {
			t.Errorf("calls %q", calls)
		}
		// This press was in flight when the last one was handled.
		tap := h.ann.TapEarly(efforts, efforts.Keyboard[0][0].Data)
		if a, err := tap.Answer(t.Context()); err != nil || !strings.Contains(a.Text, "expired") {
			t.Errorf("answer %q, %v", a.Text, err)
		}
		if calls := h.desk.Calls(); len(calls) != 1 {
			t.Errorf("a stale press changed something: %q", calls)
		}
	})
}

func testMenu() []cli.MenuEntry {
	ok := cli.Auth{State: cli.Authenticated}
	return []cli.MenuEntry{
		{Agent: "claude", Auth: ok, Models: []cli.Model{
			{Agent: "claude", ID: "opus", Name: "Opus", Default: true, Efforts: []cli.Effort{"low", "high"}},
			{Agent: "claude", ID: "sonnet", Name: "Sonnet", Efforts: []cli.Effort{"low", "high"}, DefaultEffort: "low"},
		}},
		{Agent: "codex", Auth: ok, Models: []cli.Model{{Agent: "codex", ID: "gpt-5", Name: "GPT-5", Default: true}}},
		{Agent: "gemini", Auth: cli.Auth{State: cli.Installed, Fix: "Run gemini once."}},
		{Agent: "copilot", Auth: ok, Err: errors.New("discovery failed")},
	}
}

func TestTurnButtons(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.desk.SetQueued("t1")
		h.serve(t)
		notice := h.notice(t, "pick")
		client, err := tgapi.NewClient(tgapi.ClientOptions{
			Token: h.opts.Token, APIBase: h.opts.APIBase, Transport: h.opts.Transport,
		})
		if err != nil {
			t.Fatal(err)
		}
		press := func(data string) string {
			t.Helper()
			if data != "" {
				k := tgapi.Keyboard{{{Text: "x", Data: data}}}
				if err := client.EditKeyboard(t.Context(), 7, int(notice.ID), k); err != nil {
					t.Fatal(err)
				}
			}
			a, err := h.ann.TapData(notice, data).Answer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return a.Text
		}
		for _, step := range []struct{ data, answer string }{
			{"c:t1", "Cancelled."},
			{"c:t1", "Too late"},
			{"r:t2", "Running again."},
			{"r:t2", "This was already run again"},
			{"f:t3", "Running again."},
			{"v:t4", ""},
			{"s:nobody", "no longer works"},
			{"w:AAAA:0:a0", "expired"},
			{"w:", "expired"},
			{"zz", "no longer works"},
			{"", "no longer works"},
		} {
			if got := press(step.data); !strings.Contains(got, step.answer) || step.answer == "" && got != "" {
				t.Errorf("press of %q answers %q, want %q", step.data, got, step.answer)
			}
		}
		want := []string{"cancel t1 by 7", "cancel t1 by 7", "again t2", "fresh t3", "show t4"}
		if got := h.desk.Calls(); !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
	})
}

// notice makes the bot send a message with buttons for a test.
func (h *botRig) notice(t *testing.T, text string) telegram.Message {
	t.Helper()
	h.ann.Send(h.chat, "/"+text)
	return h.await(t, text)
}
