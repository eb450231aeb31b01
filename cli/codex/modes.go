package codex

import (
	"context"
	"strconv"
	"strings"

	"ductor/cli"
)

// leastMinor is the first version 0.x whose app server has all of the protocol that ductor speaks: threads, turns
// that can be steered, and background terminals.
const leastMinor = 100

// Modes is live before one-shot, unless the installed version is too old for it. The version is asked for until it
// is known.
func (p *Provider) Modes() []cli.Mode {
	p.modesMu.Lock()
	defer p.modesMu.Unlock()
	if p.modes != nil {
		return p.modes
	}
	both := []cli.Mode{cli.Live, cli.OneShot}
	switch v := p.version(context.Background()); {
	case v == "":
		return both
	case hasAppServer(v):
		p.modes = both
	default:
		p.modes = []cli.Mode{cli.OneShot}
	}
	return p.modes
}

// hasAppServer says whether a version is new enough. One that cannot be read is taken for new.
func hasAppServer(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 || parts[0] != "0" {
		return true
	}
	minor, err := strconv.Atoi(parts[1])
	return err != nil || minor >= leastMinor
}
