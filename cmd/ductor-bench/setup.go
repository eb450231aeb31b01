package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
)

type botName string

const (
	ductorBot botName = "ductor"
	floorBot  botName = "floor"
)

// setup contains one bot and its simulated Telegram. The bot runs in a separate process, and Telegram runs in the
// process of the benchmark.
type setup struct {
	bot     botName
	srv     *telegram.Server
	watch   *watcher
	dir     string
	program string // path of ductor; without a ductor-runner beside it, ductor also runs the agents itself
	sizes   sizes
	cmd     *exec.Cmd
	ended   context.Context // done when the bot has ended
}

// newSetup starts a bot. It returns when the bot polls Telegram and has nothing else to do. extra is appended to
// ductor's configuration.
func (b *bench) newSetup(ctx context.Context, bot botName, extra string) (*setup, error) {
	dir, err := os.MkdirTemp(b.scratch, string(bot)+"-")
	if err != nil {
		return nil, err
	}
	s := &setup{bot: bot, dir: dir, program: filepath.Join(b.scratch, "ductor"), sizes: b.sizes, watch: &watcher{}}
	for _, name := range []string{"project", "bin", "home"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	if _, err := agent.Install(filepath.Join(dir, "bin")); err != nil {
		return nil, err
	}
	s.srv = telegram.New(telegram.Options{KeepCalls: 1})
	s.srv.OnCall(s.watch.call)
	if err := s.srv.Start(); err != nil {
		return nil, err
	}
	if err := s.start(ctx, extra); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *setup) start(ctx context.Context, extra string) error {
	command := []string{s.program, "run", "-c", s.config()}
	if s.bot == floorBot {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		command = []string{self, floorArg, s.srv.URL() + "/bot" + s.srv.Token(), s.claude(), s.project()}
	} else if err := os.WriteFile(s.config(), []byte(s.configuration(extra)), 0o600); err != nil {
		return err
	}
	log, err := os.Create(s.log())
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = s.command(command...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.bot, err)
	}
	var died context.CancelFunc
	s.ended, died = context.WithCancel(context.Background())
	go func() {
		defer died()
		_ = s.cmd.Wait() // ignore the exit status, because the benchmark kills the bot
	}()
	polls, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ended, func() { cancel(errors.New("it ended")) })()
	if err := s.srv.AwaitPoll(polls); err != nil {
		return s.explain(err)
	}
	return pause(ctx, s.sizes.settle)
}

// command returns a command for the bot. The command inherits nothing of this process's environment.
func (s *setup) command(words ...string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = []string{"HOME=" + filepath.Join(s.dir, "home"), "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// configuration returns the shortest possible configuration, so that the benchmark measures ductor's defaults.
func (s *setup) configuration(extra string) string {
	var users []string
	for id := range max(s.sizes.fresh, s.sizes.chats, s.sizes.crowd) {
		users = append(users, strconv.Itoa(id+1))
	}
	return fmt.Sprintf("[telegram]\ntoken = %q\napi_base = %q\nallowed_users = [%s]\n[projects]\nroots = [%q]\n"+
		"[agents.claude]\npath = %q\n%s",
		s.srv.Token(), s.srv.URL(), strings.Join(users, ", "), s.project(), s.claude(), extra)
}

func (s *setup) config() string  { return filepath.Join(s.dir, "config.toml") }
func (s *setup) log() string     { return filepath.Join(s.dir, "log") }
func (s *setup) project() string { return filepath.Join(s.dir, "project") }
func (s *setup) claude() string  { return filepath.Join(s.dir, "bin", agent.Claude) }

// chat returns the private chat of the user with this ID. The first user's ID is 1.
func (s *setup) chat(id int) *telegram.Chat {
	return s.srv.Private(telegram.UserID(id), "User "+strconv.Itoa(id))
}

// explain adds the last lines of the bot's log to an error.
func (s *setup) explain(err error) error {
	b, _ := os.ReadFile(s.log())
	return fmt.Errorf("%w; the log of %s ends with: %s", err, s.bot, b[max(0, len(b)-2000):])
}

// stop asks the bot to end, and waits for its end.
func (s *setup) stop(ctx context.Context) error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", s.bot, err)
	}
	select {
	case <-s.ended.Done():
		return nil
	case <-ctx.Done():
		return s.explain(context.Cause(ctx))
	}
}

// close kills the bot and its agents, and deletes its files.
func (s *setup) close() error {
	var err error
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill() // fails if the process has already ended
		<-s.ended.Done()
		if s.bot == ductorBot {
			err = s.killRuns()
		}
	}
	return errors.Join(err, s.srv.Close(), removeAll(s.dir))
}

// removeAll deletes a directory. It tries several times, because killed agents may still write there for a moment.
func removeAll(dir string) (err error) {
	const patience, pause = 30 * time.Second, 50 * time.Millisecond
	for range patience / pause {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(pause)
	}
	return err
}

// killRuns kills the agents. Killing ductor alone does not end them.
func (s *setup) killRuns() error {
	out, err := s.command(s.program, "kill", "--all", "-c", s.config()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("end the agents: %w: %s", err, out)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
