package files

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/orchestrator"
)

// project has files by path. Those whose names end in .png are pictures.
type project struct {
	orchestrator.Files
	files   map[string]string
	reads   int
	turnDir string // where the turn works; empty for the directory of the chat
}

func (p *project) OfTurn(context.Context, orchestrator.Turn) (orchestrator.FilePlace, error) {
	return orchestrator.FilePlace{Dir: cmp.Or(p.turnDir, "/root/work")}, nil
}

func (p *project) Read(_ context.Context, _ orchestrator.FilePlace, path string) (orchestrator.ProjectFile, error) {
	p.reads++
	content, ok := p.files[path]
	if !ok {
		return orchestrator.ProjectFile{}, &orchestrator.FileError{Path: path, Why: orchestrator.FileNotThere}
	}
	return orchestrator.ProjectFile{Name: path, Content: []byte(content), Picture: strings.HasSuffix(path, ".png")}, nil
}

// journal is a store that stores several messages either all or not at all.
type journal struct{ *bottest.Journal }

func (j journal) FinishUpdates(ctx context.Context, _ []int64, notices ...orchestrator.Message) error {
	j.Mu.Lock()
	if j.DiesAt > 0 && j.Writes+len(notices) >= j.DiesAt {
		j.Writes = j.DiesAt
		j.Mu.Unlock()
		return fmt.Errorf("ductor is dead")
	}
	j.Mu.Unlock()
	for _, m := range notices {
		if err := j.SaveMessage(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// rig has a Sender and everything it needs, over several processes.
type rig struct {
	*testing.T
	chat    *bottest.Chat
	store   journal
	project *project
	dir     string
	sender  *Sender
	end     func()
}

func inHouse(t *testing.T, work func(h *rig)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := &rig{T: t, chat: bottest.NewChat(t), store: journal{bottest.NewJournal()}, dir: dir}
		h.project = &project{files: map[string]string{
			"a.txt": "a", "b.png": "b", "c.png": "c", "d.pdf": "d",
		}}
		h.open()
		work(h)
		h.end()
	})
}

// open starts a process.
func (h *rig) open() {
	out := bottest.NewOutbox()
	h.store.Mu.Lock()
	h.store.DiesAt = 0
	h.store.Mu.Unlock()
	spool, err := message.OpenSpool(context.Background(), h.dir, h.store)
	if err != nil {
		h.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	messages := message.New(out, h.chat, h.store, nil, log).WithSpool(spool)
	h.sender = NewSender(Options{Files: h.project, Messages: messages, Spool: spool, Store: h.store, Marks: true, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { messages.Run(ctx); close(ended) }()
	h.end = func() {
		cancel()
		<-ended
		dead, cancel := context.WithCancel(context.Background())
		cancel()
		_ = out.Drain(dead) // like a kill
		synctest.Wait()
		_ = spool.Close()
	}
}

// deliver shows an answer.
func (h *rig) deliver(text string) error { return h.deliverAs(orchestrator.TurnDone, text) }

func (h *rig) deliverAs(state orchestrator.TurnState, text string) error {
	t := orchestrator.Turn{ID: "T1", Prompt: orchestrator.Prompt{Conversation: orchestrator.ConversationID{Chat: 1}}}
	return h.sender.Deliver(context.Background(), t, orchestrator.Outcome{State: state, Text: text})
}

func (h *rig) wantCalls(want ...string) {
	h.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	h.chat.Mu.Lock()
	defer h.chat.Mu.Unlock()
	if !slices.Equal(h.chat.Calls, want) {
		h.Errorf("calls %q, want %q", h.chat.Calls, want)
	}
}

// wantSpool checks how many files wait to be sent.
func (h *rig) wantSpool(want int) {
	h.Helper()
	entries, err := os.ReadDir(h.dir)
	if err != nil || len(entries) != want {
		h.Errorf("%d files wait, %v; want %d", len(entries), err, want)
	}
}

const answer = "Done.\n\n[[file: a.txt]]\n\n[[file: b.png | The plan]] [[file: c.png]] [[file: b.png]]\n\n[[file: gone.txt]]\n"

func TestFilesOfAnAnswerAreSent(t *testing.T) {
	inHouse(t, func(h *rig) {
		if err := h.deliver(answer); err != nil {
			h.Fatal(err)
		}
		h.wantCalls("document", "picture", "send")
		if got := h.chat.Sent(); !slices.Equal(got, []string{"a", "b", "c"}) {
			h.Errorf("sent %q", got)
		}
		if got := h.chat.Text(); got != "📎 gone.txt: there is no such file." {
			h.Errorf("the chat shows %q", got)
		}
		h.wantSpool(0)
		if err := h.deliver(answer); err != nil { // as after a restart
			h.Error(err)
		}
		h.wantCalls("document", "picture", "send")
		if h.project.reads != 4 {
			h.Errorf("files were read %d times", h.project.reads)
		}
	})
}

// An answer that breaks off sends the files that it names completely.
func TestAnAnswerThatFailedSendsItsFiles(t *testing.T) {
	for _, state := range []orchestrator.TurnState{orchestrator.TurnFailed, orchestrator.TurnInterrupted} {
		inHouse(t, func(h *rig) {
			if err := h.deliverAs(state, "[[file: a.txt]] [[file: gone.txt]] [[file: b.p"); err != nil {
				h.Fatal(err)
			}
			h.wantCalls("document", "send")
			if got := h.chat.Text(); got != "📎 gone.txt: there is no such file." {
				h.Errorf("%s: the chat shows %q", state, got)
			}
		})
	}
}

// After an abort, one silent message names the files of the answer, and how to get them.
func TestAnAnswerThatWasStoppedNamesItsFiles(t *testing.T) {
	inHouse(t, func(h *rig) {
		for range 2 { // the second time as after a restart
			if err := h.deliverAs(orchestrator.TurnAborted, answer+"[[file: d.p"); err != nil {
				h.Fatal(err)
			}
			h.wantCalls("send")
		}
		want := "📎 Not sent, because the turn was stopped: a.txt, b.png, c.png, gone.txt. /get a.txt sends a file."
		if got := h.chat.Text(); got != want || h.project.reads != 1 {
			h.Errorf("the chat shows %q after %d reads", got, h.project.reads)
		}
		if err := h.deliverAs(orchestrator.TurnAborted, "no files"); err != nil {
			h.Fatal(err)
		}
		h.wantCalls("send")
	})
}

// The message about files of an aborted turn contains only a command that the user may use and that works.
func TestTheCommandForUnsentFiles(t *testing.T) {
	member := orchestrator.Turn{Prompt: orchestrator.Prompt{
		Rights: orchestrator.Rights{Of: orchestrator.RightsOfMember}}}
	job := orchestrator.Turn{ID: orchestrator.JobRun{ID: "r1"}.Turn(), Prompt: orchestrator.Prompt{
		Rights: orchestrator.Rights{Of: orchestrator.RightsOfJob}}}
	quiet := orchestrator.Turn{Wants: orchestrator.Wants{Silence: "NOTHING"}}
	for name, c := range map[string]struct {
		turn  orchestrator.Turn
		dir   string
		named string
		want  string
	}{
		"of a member":         {member, "", "a.txt", "a.txt."},
		"of a job":            {job, "", "a.txt", "a.txt. /get a.txt sends a file."},
		"of a quiet job":      {quiet, "", "a.txt", ""},
		"in the chat's place": {orchestrator.Turn{}, "", "a.txt", "a.txt. /get a.txt sends a file."},
		"in another place": {orchestrator.Turn{}, "/elsewhere", "b.txt",
			"b.txt. /get /elsewhere/b.txt sends a file."},
		"an absolute path": {orchestrator.Turn{}, "/elsewhere", "/elsewhere/b.txt",
			"/elsewhere/b.txt. /get /elsewhere/b.txt sends a file."},
		"out of reach":             {orchestrator.Turn{}, "/elsewhere", "a.txt", "a.txt."},
		"a file that is not there": {orchestrator.Turn{}, "", "gone.txt", "gone.txt."},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(h *rig) {
				h.project.turnDir, h.project.files["/elsewhere/b.txt"] = c.dir, "b"
				c.turn.ID = cmp.Or(c.turn.ID, "T")
				stopped := orchestrator.Outcome{State: orchestrator.TurnAborted, Text: "[[file: " + c.named + "]]"}
				if err := h.sender.Deliver(context.Background(), c.turn, stopped); err != nil {
					h.Fatal(err)
				}
				if c.want == "" {
					h.wantCalls()
					return
				}
				h.wantCalls("send")
				if got := h.chat.Text(); got != "📎 Not sent, because the turn was stopped: "+c.want {
					h.Errorf("the chat shows %q", got)
				}
			})
		})
	}
}

// However Telegram answers, a file is in the chat once, or a notice says that it may be missing.
func TestFilesUnderMishaps(t *testing.T) {
	for mishap, want := range map[bottest.Mishap][]string{
		bottest.RateLimited: {"picture", "picture"}, bottest.NotSent: {"picture", "picture"}, bottest.ServerBroken: {"picture", "picture"},
		bottest.LostAfter: {"picture", "send"}, bottest.LostBefore: {"picture", "send"}, bottest.RefusedOnce: {"picture", "document"},
	} {
		t.Run(string(mishap), func(t *testing.T) {
			inHouse(t, func(h *rig) {
				h.chat.Mishaps = bottest.AtFirst(mishap)
				if err := h.deliver("[[file: b.png]]"); err != nil {
					h.Fatal(err)
				}
				h.wantCalls(want...)
				if said := h.chat.Text(); strings.Contains(said, "b.png may not have arrived") != (want[1] == "send") {
					h.Errorf("the chat says %q", said)
				}
				h.wantSpool(0)
			})
		})
	}
}

// A bot that may not send files passes on Telegram's reason.
func TestABotThatMaySendNoFiles(t *testing.T) {
	inHouse(t, func(h *rig) {
		h.chat.Mishaps = func(method string) bottest.Mishap {
			if method == "send" {
				return bottest.GoesWell
			}
			return bottest.RefusedOnce
		}
		if err := h.deliver("[[file: b.png]][[file: d.pdf]]"); err != nil {
			h.Fatal(err)
		}
		h.wantCalls("picture", "document", "send", "document", "send")
		if got := h.chat.Text(); strings.Count(got, "Telegram didn't accept") != 2 {
			h.Errorf("the chat shows %q", got)
		}
		h.wantSpool(0)
	})
}

// Wherever ductor dies, the next process sends the missing files. It sends nothing twice and leaves no file in the
// spool.
func TestNoDeathLosesOrDoublesAFile(t *testing.T) {
	const lives = 12
	for diesAt := 1; diesAt <= lives; diesAt++ {
		t.Run(fmt.Sprint("at write ", diesAt), func(t *testing.T) {
			inHouse(t, func(h *rig) {
				h.store.DiesAt = diesAt
				err := h.deliver("[[file: a.txt]][[file: b.png]]")
				time.Sleep(time.Minute)
				synctest.Wait()
				h.end()
				h.open()
				if err != nil { // the outcome is not delivered yet
					if err := h.deliver("[[file: a.txt]][[file: b.png]]"); err != nil {
						h.Error(err)
					}
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				sent := h.chat.Sent()
				for _, file := range []string{"a", "b"} {
					n := 0
					for _, s := range sent {
						if s == file {
							n++
						}
					}
					if n > 1 || n == 0 && !strings.Contains(h.chat.Text(), "may not have arrived") {
						h.Errorf("%s is in the chat %d times: %q\n%s", file, n, sent, h.chat.Text())
					}
				}
				h.wantSpool(0)
			})
		})
	}
}

// An upload that takes minutes delays nothing else in the chat.
func TestAnUploadHoldsUpNothing(t *testing.T) {
	inHouse(t, func(h *rig) {
		h.chat.Delay = 10 * time.Minute
		if err := h.deliver("[[file: d.pdf]]"); err != nil {
			h.Fatal(err)
		}
		synctest.Wait()
		h.chat.Mu.Lock()
		h.chat.Delay = 0
		h.chat.Mu.Unlock()
		if err := h.sender.Messages.Post(context.Background(), orchestrator.ConversationID{Chat: 1}, "quick"); err != nil {
			h.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := h.chat.Text(); got != "quick" || len(h.chat.Sent()) > 0 {
			h.Errorf("after a minute the chat shows %q and %q", got, h.chat.Sent())
		}
		time.Sleep(10 * time.Minute)
		if len(h.chat.Sent()) != 1 {
			h.Error("the file did not arrive")
		}
	})
}

func TestAnAnswerWithManyFiles(t *testing.T) {
	inHouse(t, func(h *rig) {
		text := ""
		for i := range 25 {
			name := fmt.Sprintf("%02d.png", i)
			h.project.files[name] = name
			text += "[[file: " + name + "]]\n"
		}
		if err := h.deliver(text); err != nil {
			h.Fatal(err)
		}
		h.wantCalls("picture", "picture", "send")
		if got := h.chat.Text(); !strings.Contains(got, "20.png and the rest") || len(h.chat.Sent()) != 20 {
			h.Errorf("%d were sent, and the chat shows %q", len(h.chat.Sent()), got)
		}
	})
}
