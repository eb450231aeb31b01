package claude

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// fakeProcess is a Claude inside the test, which determines its output and timing.
type fakeProcess struct {
	stdin  *io.PipeWriter
	stdout *io.PipeReader
	say    *io.PipeWriter
	heard  chan heard
	done   chan struct{}
	once   sync.Once

	mu    sync.Mutex
	begun []cli.Mark
}

func (f *fakeProcess) Begin(_ context.Context, m cli.Mark) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = append(f.begun, m)
	return nil
}

// marks returns the recorded marks.
func (f *fakeProcess) marks() []cli.Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.begun)
}

// heard is a line that was written to the fake process.
type heard struct {
	Type    string
	UUID    string
	Request struct{ Subtype string }
	Message struct{ Content []block }
	Raw     string `json:"-"`
}

func newFakeProcess() *fakeProcess {
	in, stdin := io.Pipe()
	stdout, say := io.Pipe()
	f := &fakeProcess{stdin: stdin, stdout: stdout, say: say, heard: make(chan heard, 16), done: make(chan struct{})}
	go f.listen(in)
	return f
}

// listen ends when standard input does. Like Claude, the process ends with it.
func (f *fakeProcess) listen(in io.Reader) {
	defer close(f.heard)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		h := heard{Raw: lines.Text()}
		_ = json.Unmarshal(lines.Bytes(), &h) // a line that is not JSON is kept unchanged
		f.heard <- h
	}
	f.exit()
}

func (f *fakeProcess) print(lines ...string) {
	_, _ = io.WriteString(f.say, strings.Join(lines, "\n")+"\n") // the reader is gone once the process is
}

func (f *fakeProcess) exit() {
	f.once.Do(func() {
		_ = f.say.Close()
		close(f.done)
	})
}

func (f *fakeProcess) Run() cli.RunID        { return "fake" }
func (f *fakeProcess) When(int64) time.Time  { return time.Time{} }
func (f *fakeProcess) Ended(int64)           {}
func (f *fakeProcess) Detach()               { _ = f.Stop(context.Background(), 0) }
func (f *fakeProcess) PID() int              { return 1 }
func (f *fakeProcess) Stdin() io.WriteCloser { return f.stdin }
func (f *fakeProcess) Stdout() io.Reader     { return f.stdout }
func (f *fakeProcess) StderrTail() string    { return "" }
func (f *fakeProcess) Interrupt() error      { return nil }
func (f *fakeProcess) Done() <-chan struct{} { return f.done }
func (f *fakeProcess) Exit() cli.ExitStatus  { return cli.ExitStatus{} }
func (f *fakeProcess) Stop(context.Context, time.Duration) error {
	f.exit()
	_ = f.stdin.Close()
	return nil
}

// fakeLauncher starts the same fake process once.
type fakeLauncher struct {
	cli.Launcher
	process *fakeProcess
}

func (l fakeLauncher) Start(context.Context, cli.Command) (cli.Process, error) { return l.process, nil }
func (l fakeLauncher) Attach(context.Context, cli.LeftRun, int64) (cli.Process, error) {
	return l.process, nil
}
func (l fakeLauncher) Settled(cli.TurnID)                   {}
func (l fakeLauncher) LookPath(name string) (string, error) { return name, nil }

type backgroundTurn struct {
	conversation cli.Conversation
	cli.BackgroundResult
}

// fakeLive opens a live session over a fake process.
func fakeLive(t *testing.T) (cli.Session, *fakeProcess, *[]backgroundTurn) {
	t.Helper()
	f := newFakeProcess()
	var mu sync.Mutex
	all := &[]backgroundTurn{}
	p := New(Options{
		ProviderOptions: cli.ProviderOptions{
			Launcher: fakeLauncher{process: f}, Env: func() []string { return nil },
		},
		Background: func(c cli.Conversation, r cli.BackgroundResult) {
			mu.Lock()
			defer mu.Unlock()
			*all = append(*all, backgroundTurn{c, r})
		},
	})
	return clitest.Open(t, p, cli.Live, cli.Request{Conversation: "7/0"}), f, all
}
