package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Errors of a Manager, for errors.Is.
var (
	ErrOwn       = errors.New("the unit was not written by ductor")
	ErrNone      = errors.New("there is no unit of ductor")
	ErrNoSystemd = errors.New("systemd is not running here")
)

// Manager controls ductor's unit with systemctl and journalctl. It passes their output to Out and Err.
type Manager struct {
	Scope Scope
	Dir   string // directory for unit files; see the function Dir
	Out   io.Writer
	Err   io.Writer
}

// Dir returns the directory for unit files of a scope. config is the user's configuration directory.
func Dir(scope Scope, config string) string {
	if scope == System {
		return "/etc/systemd/system"
	}
	return filepath.Join(config, "systemd", "user")
}

// Path returns the path of the unit file.
func (m Manager) Path() string { return filepath.Join(m.Dir, Name+".service") }

// Check returns an error if Install cannot write the unit file. It returns ErrOwn if a unit file exists that Install
// did not write, and ErrNoSystemd if systemd does not run in this scope.
func (m Manager) Check(ctx context.Context) error {
	if err := m.checkRunning(ctx); err != nil {
		return err
	}
	if err := m.checkWritten(); err != nil && !errors.Is(err, ErrNone) {
		return err
	}
	return nil
}

func (m Manager) checkRunning(ctx context.Context) error {
	if _, err := exec.LookPath("systemctl"); err != nil {
		return fmt.Errorf("%w; start ductor run in another way", ErrNoSystemd)
	}
	quiet := m
	quiet.Out, quiet.Err = io.Discard, io.Discard
	if err := quiet.run(ctx, "systemctl", "show", "--property=Version"); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return m.noSystemdError()
	}
	return nil
}

func (m Manager) noSystemdError() error {
	if info, err := os.Stat("/run/systemd/system"); m.Scope == User && err == nil && info.IsDir() {
		return fmt.Errorf("%w for this user: log in to the machine as that user itself (su and sudo are no log-in), or use ductor service install --system", ErrNoSystemd)
	}
	return fmt.Errorf("%w, as in most containers; start ductor run in another way", ErrNoSystemd)
}

// checkWritten returns ErrNone if the unit file is missing, and ErrOwn if Install did not write it.
func (m Manager) checkWritten() error {
	text, err := os.ReadFile(m.Path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w at %s", ErrNone, m.Path())
	case err != nil:
		return fmt.Errorf("read the unit: %w", err)
	case !strings.HasPrefix(string(text), mark):
		return fmt.Errorf("%w: move %s away first, with what you changed in it", ErrOwn, m.Path())
	}
	return nil
}

// Install writes the unit file atomically, enables the service and starts it. If the service is running, Install
// restarts it, and its agents continue.
func (m Manager) Install(ctx context.Context, text string) error {
	if err := m.Check(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return fmt.Errorf("write the unit: %w", err)
	}
	draft := m.Path() + ".new"
	// systemd must be able to read the unit file. The file contains no secret.
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Rename(draft, m.Path())
	}
	if err != nil {
		return fmt.Errorf("write the unit: %w", err)
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", Name}, {"restart", Name}} {
		if err := m.run(ctx, "systemctl", args...); err != nil {
			return err
		}
	}
	return nil
}

// Uninstall stops the service and removes its unit file. It does not stop running agents.
func (m Manager) Uninstall(ctx context.Context) error {
	if err := errors.Join(m.checkWritten(), m.checkRunning(ctx)); err != nil {
		return err
	}
	if err := m.checkRunning(ctx); err != nil {
		return err
	}
	if err := m.run(ctx, "systemctl", "disable", "--now", Name); err != nil {
		return err
	}
	if err := os.Remove(m.Path()); err != nil {
		return fmt.Errorf("remove the unit: %w", err)
	}
	return m.run(ctx, "systemctl", "daemon-reload")
}

// Status prints systemd's status of the service. It returns an error if the service does not run.
func (m Manager) Status(ctx context.Context) error {
	if err := m.checkRunning(ctx); err != nil {
		return err
	}
	return m.run(ctx, "systemctl", "status", "--no-pager", "--lines=5", Name)
}

// Logs prints the newest lines of the log. If follow is Continue, it then waits for new lines and prints them.
func (m Manager) Logs(ctx context.Context, lines int, follow Follow) error {
	args := []string{"--unit=" + Name}
	if m.Scope == User {
		args = []string{"--user-unit=" + Name}
	}
	args = append(args, "--no-pager", fmt.Sprintf("--lines=%d", lines))
	if follow == Continue {
		args = append(args, "--follow")
	}
	return m.exec(ctx, "journalctl", args)
}

// Follow determines whether Logs waits for new lines.
type Follow string

const (
	End      Follow = "end"
	Continue Follow = "continue"
)

func (m Manager) run(ctx context.Context, name string, args ...string) error {
	if m.Scope == User {
		args = append([]string{"--user"}, args...)
	}
	return m.exec(ctx, name, args)
}

func (m Manager) exec(ctx context.Context, name string, args []string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = m.Out, m.Err
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w (%w)", ErrNoSystemd, err)
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
