package host_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/host"
	"ductor/cli/turn"
)

// piped is a Process without a runner, for comparison.
type piped struct {
	cli.Process // methods that no benchmark calls
	cmd         *exec.Cmd
	in          io.WriteCloser
	out         io.ReadCloser
	done        chan struct{}
}

func startPiped(c cli.Command) (cli.Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, c.Env
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &piped{cmd: cmd, in: in, out: out, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the exit status is irrelevant
	}()
	return p, w.Close()
}

func (p *piped) Stdin() io.WriteCloser                 { return p.in }
func (p *piped) Stdout() io.Reader                     { return p.out }
func (p *piped) StderrTail() string                    { return "" }
func (p *piped) Done() <-chan struct{}                 { return p.done }
func (p *piped) Begin(context.Context, cli.Mark) error { return nil }
func (p *piped) Ended(int64)                           {}
func (p *piped) Stop(ctx context.Context, g time.Duration) error {
	_ = p.cmd.Process.Kill()
	<-p.done
	return nil
}

// each benchmarks a program with and without a runner.
func each(b *testing.B, f func(b *testing.B, start func(cli.Command) (cli.Process, error))) {
	b.Run("run", func(b *testing.B) {
		h := clitest.OpenHost(b, host.Options{})
		f(b, func(c cli.Command) (cli.Process, error) { return h.Start(b.Context(), c) })
	})
	b.Run("piped", func(b *testing.B) { f(b, startPiped) })
}

func stream(b *testing.B, p cli.Process, err error) *turn.Stream {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	return turn.NewStream(p, turn.StreamOptions{Agent: "fake"})
}

func closed(b *testing.B, s *turn.Stream) {
	b.Helper()
	if err := s.Close(context.Background()); err != nil {
		b.Error(err)
	}
}

// The time from the start of a program to its first line.
func BenchmarkFirstLine(b *testing.B) {
	each(b, func(b *testing.B, start func(cli.Command) (cli.Process, error)) {
		cmd := sh(b, "echo first; exec sleep 60")
		for b.Loop() {
			p, err := start(cmd)
			s := stream(b, p, err)
			s.Turn(b.Context(), turn.Loop[[]byte]{Handle: func([]byte) bool { return true }})
			b.StopTimer()
			closed(b, s)
			time.Sleep(20 * time.Millisecond) // for the next spare run
			b.StartTimer()
		}
	})
}

// The time from printing a line to handling it, line by line.
func BenchmarkLineLatency(b *testing.B) {
	each(b, func(b *testing.B, start func(cli.Command) (cli.Process, error)) {
		p, err := start(helper(b, "clock"))
		s := stream(b, p, err)
		var total time.Duration
		n := 0
		for b.Loop() {
			s.Turn(b.Context(), turn.Loop[[]byte]{Handle: func(l []byte) bool {
				at, err := strconv.ParseInt(string(l), 10, 64)
				if err != nil {
					b.Fatal(err)
				}
				total += monotonic() - time.Duration(at)
				n++
				return true
			}})
		}
		b.ReportMetric(float64(total.Microseconds())/float64(n), "µs/line")
		closed(b, s)
	})
}

// monotonic returns a clock that all processes share.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// Lines as fast as a program can print them.
func BenchmarkLines(b *testing.B) {
	const block = 1000
	line := strings.Repeat("x", 199) + "\n"
	each(b, func(b *testing.B, start func(cli.Command) (cli.Process, error)) {
		p, err := start(cli.Command{Path: "cat", Env: os.Environ()})
		s := stream(b, p, err)
		b.SetBytes(int64(block * len(line)))
		ask := bytes.Repeat([]byte(line), block)
		for b.Loop() {
			n := 0
			s.Turn(b.Context(), turn.Loop[[]byte]{
				Begin: func() {
					if err := s.Send(ask); err != nil {
						b.Error(err)
					}
				},
				Handle: func([]byte) bool { n++; return n == block },
			})
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*block), "µs/line")
		closed(b, s)
	})
}

// The cost of a mark before a prompt is sent.
func BenchmarkMark(b *testing.B) {
	h := clitest.Host(b)
	p, err := h.Start(b.Context(), cli.Command{Path: "cat", Env: os.Environ()})
	s := stream(b, p, err)
	for b.Loop() {
		s.Turn(b.Context(), turn.Loop[[]byte]{
			Mark: cli.Mark{Turn: "1"},
			Begin: func() {
				if err := s.Send([]byte("x\n")); err != nil {
					b.Error(err)
				}
			},
			Handle: func([]byte) bool { return true },
		})
		h.Settled("1")
	}
	closed(b, s)
}

// printClock prints the time repeatedly, with pauses in which a busy stream calms down.
func printClock() int {
	for {
		if _, err := fmt.Println(monotonic().Nanoseconds()); err != nil {
			return 0 // no reader any more
		}
		time.Sleep(60 * time.Millisecond)
	}
}
