package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ductor/cli/clitest"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// Parts of messages that the chats show.
const (
	saysFull   = "The disk of the machine I run on is full"
	saysFailed = "The disk under my database reports an error"
)

// TestDiskInTrouble fills the disk under a ductor and then makes it fail, while one user's agent works and others
// write. Each waiting user gets one message, nothing is lost or done twice, and the process ends only for a failed
// disk.
func TestDiskInTrouble(t *testing.T) {
	s := newSickDisk(t)
	s.fillAtFlush()
	s.fillDisk()
	s.failDisk()
	s.repairDisk()
}

// failingDisk is a town whose ductor stores its state on a small disk that the test can make fail.
type failingDisk struct {
	*town
	disk    *faultyDisk
	dir     string
	path    string // of the configuration
	d       *daemon
	works   string // exists in the neighbour's project while their agent works
	ballast string
	other   *telegram.Chat
	log     logText // of each ductor
}

func newSickDisk(t *testing.T) *failingDisk {
	t.Helper()
	s := &failingDisk{dir: t.TempDir()}
	if err := unix.Mount("none", s.dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skip("no tmpfs can be mounted: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(s.dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s.disk = newFaultyDisk(t)
	s.town = surroundings(t, func(c *config.Config) { c.Storage.Dir = filepath.Join(s.dir, "state") })
	s.path = s.writeConfig()
	amend(t, s.path, fmt.Sprintf("allowed_users = [%d]", owner),
		fmt.Sprintf("allowed_users = [%d, %d]", owner, neighbour))
	s.other = s.srv.Private(neighbour, "Neighbour")
	s.works, s.ballast = filepath.Join(s.cfg.Projects.DefaultDir, "works"), filepath.Join(s.dir, "ballast")
	s.startDuctor()
	eventually(t, "a look at the last agent", func() bool { // the probe's use of the disk is over
		return strings.Contains(s.log.String(), "msg=agent name=copilot")
	})
	s.other.Person().Send(s.other,
		`[[start]] [[tool cmd="touch works; until [ -e go ]; do sleep 0.05; done"]] [[text "the neighbour's answer"]]`)
	awaitFile(t, s.works)
	return s
}

// startDuctor starts a ductor and waits until it polls.
func (s *failingDisk) startDuctor() {
	s.t.Helper()
	s.d = s.run("run", "-c", s.path)
	if err := s.srv.AwaitPoll(s.soon()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *failingDisk) run(args ...string) *daemon {
	s.t.Helper()
	cmd := exec.Command(clitest.Program(s.t), args...)
	cmd.Env = append(os.Environ(), beDuctor+"=1", "GORACE=atexit_sleep_ms=0")
	return watchDaemon(s.t, cmd, func(cmd *exec.Cmd) error {
		cmd.Stderr = io.MultiWriter(cmd.Stderr, &s.log)
		return s.disk.start(cmd)
	})
}

// logText records the text written to it. It is safe for concurrent use.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// fillAtFlush makes the disk report that it is full only when ductor flushes.
func (s *failingDisk) fillAtFlush() {
	s.disk.fail(syscall.ENOSPC)
	s.say(`[[start]] [[text "of a full disk"]]`)
	s.await(saysFull)
	s.awaitOther(saysFull)
	s.doctorSays("the disk is full")
}

// fillDisk leaves no space when the disk accepts writes again. /status reports it.
func (s *failingDisk) fillDisk() {
	if err := os.WriteFile(s.ballast, make([]byte, 64<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		s.t.Fatalf("the disk is not full: %v", err)
	}
	s.disk.fail(0)
	s.doctorSays("the disk is full")
	s.say("/status")
	if _, err := s.chat.Await(s.soon(), func(v telegram.View) bool {
		return strings.Count(joined(v), saysFull) == 2
	}); err != nil {
		s.fatal(err)
	}
	if s.srv.PendingUpdates() == 0 {
		s.t.Error("a message was acknowledged that could not be stored")
	}
	if err := os.Remove(s.ballast); err != nil {
		s.t.Fatal(err)
	}
	s.await("of a full disk")
	s.await("Folder: ") // the answer to /status
	if err := s.srv.AwaitAcknowledged(s.soon()); err != nil {
		s.t.Fatal(err)
	}
	if told := strings.Count(joined(s.other.View()), saysFull); told != 1 {
		s.t.Errorf("the neighbour is told %d times that the disk is full", told)
	}
}

// failDisk makes the disk's contents unknown. ductor reports that and exits, and does not start until the disk works.
func (s *failingDisk) failDisk() {
	s.disk.fail(syscall.EIO)
	s.say(`[[start]] [[text "of a disk that failed"]]`)
	if code := s.d.exit(s.t); code != exitDisk {
		s.t.Errorf("ductor ends with %d", code)
	}
	s.await(saysFailed)
	s.awaitOther(saysFailed)
	s.doctorSays("reports an error")
	if code := s.run("run", "-c", s.path).exit(s.t); code != exitDisk {
		s.t.Errorf("over a disk that fails ductor ends with %d", code)
	}
	s.disk.fail(0)
}

// repairDisk repairs the disk. Every prompt is then answered once.
func (s *failingDisk) repairDisk() {
	s.startDuctor()
	s.await("that failed") // a message of unknown fate may have the words before
	if err := os.WriteFile(filepath.Join(s.cfg.Projects.DefaultDir, "go"), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.other.Await(s.soon(), func(v telegram.View) bool { return len(ended(v)) > 0 }); err != nil {
		s.fatal(err)
	}
	s.say(`[[start]] [[text "the last"]]`)
	checkShownOnce(s.town, s.chat, "the last")
	shown := map[string]int{} // number of occurrences of each line
	for _, m := range append(s.chat.View().FromBot(), s.other.View().FromBot()...) {
		for line := range strings.Lines(m.Text) {
			line = strings.TrimSpace(line)
			if strings.HasSuffix("of a disk that failed", line) && strings.HasSuffix(line, "that failed") {
				line = "of a disk that failed" // its beginning is in a message of unknown fate
			}
			shown[line]++
		}
	}
	// If the disk failed while an answer was being sent, its message is unknown. The rest then is another message.
	for _, part := range []string{"of a full disk", "of a disk that failed", "the neighbour's answer"} {
		if shown[part] != 1 {
			s.t.Errorf("%q is shown %d times in\n%s\nand\n%s", part, shown[part], joined(s.other.View()),
				joined(s.chat.View()))
		}
	}
	text := joined(s.chat.View()) + joined(s.other.View())
	if n := strings.Count(text, saysFailed); n != 2 {
		s.t.Errorf("two chats are told %d times that the disk failed", n)
	}
}

func (s *failingDisk) awaitOther(part string) {
	s.t.Helper()
	if _, err := s.other.AwaitText(s.soon(), part); err != nil {
		s.fatal(err)
	}
}

func (s *failingDisk) doctorSays(part string) {
	s.t.Helper()
	var out strings.Builder
	cmd := exec.CommandContext(s.soon(), clitest.Program(s.t), "doctor", "-c", s.path)
	cmd.Env = append(os.Environ(), beDuctor+"=1")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := s.disk.start(cmd); err != nil {
		s.t.Fatal(err)
	}
	_ = cmd.Wait()
	if !strings.Contains(out.String(), "FAIL disk") || !strings.Contains(out.String(), part) {
		s.t.Errorf("doctor says\n%s", out.String())
	}
}
