// Package presence reports whether the user is away from this machine. Users can choose this themselves. If they have
// not chosen, they are away while logind reports all their sessions as locked or idle.
package presence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ductor/internal/rooted"
)

// Choice is the user's setting, which defines whether the user counts as away.
type Choice string

// Choice values. Auto is the default: logind decides whether the user is away.
const (
	Auto Choice = "auto"
	Away Choice = "on"
	Here Choice = "off"
)

// Options configures a Presence. All fields are required.
type Options struct {
	State string // ductor's state directory, where the choice is stored
	// Ask runs loginctl with the given arguments and returns the output. The usual value is Logind.
	Ask func(ctx context.Context, args ...string) (string, error)
	UID int
}

type Presence struct{ opts Options }

// New returns a Presence.
func New(o Options) *Presence { return &Presence{o} }

const choiceFile = "terminal-away"

// Choice returns the user's current setting.
func (p *Presence) Choice() Choice {
	raw, err := os.ReadFile(p.opts.State + "/" + choiceFile)
	if c := Choice(strings.TrimSpace(string(raw))); err == nil && (c == Away || c == Here) {
		return c
	}
	return Auto
}

// Choose stores the user's setting, so that it survives restarts.
func (p *Presence) Choose(c Choice) error {
	path := filepath.Join(p.opts.State, choiceFile)
	if c == Auto {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reset whether you are away: %w", err)
		}
		return nil
	}
	if err := rooted.ReplaceFile(path, []byte(c+"\n"), nil); err != nil {
		return fmt.Errorf("store whether you are away: %w", err)
	}
	return nil
}

// Away reports whether the user is away. It returns false if this is unknown.
func (p *Presence) Away(ctx context.Context) bool {
	switch p.Choice() {
	case Away:
		return true
	case Here:
		return false
	}
	ids, err := p.opts.Ask(ctx, "show-user", strconv.Itoa(p.opts.UID), "--property=Sessions", "--value")
	if err != nil {
		return false
	}
	away := false
	for _, id := range strings.Fields(ids) {
		said, err := p.opts.Ask(ctx, "show-session", id, "--property=Class,State,LockedHint,IdleHint")
		if err != nil {
			continue // the session has just ended
		}
		s := parseProperties(said)
		if s["Class"] != "user" || s["State"] == "closing" {
			continue // ignore sessions of services, and sessions that are about to end
		}
		if s["LockedHint"] != "yes" && s["IdleHint"] != "yes" {
			return false
		}
		away = true
	}
	return away
}

func parseProperties(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			all[name] = value
		}
	}
	return all
}

// logindTimeout limits how long loginctl may take, because an agent in a terminal waits for it.
const logindTimeout = 400 * time.Millisecond

// Logind runs loginctl.
func Logind(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, logindTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "loginctl", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask logind: %w", err)
	}
	return string(out), nil
}
