package docker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/host"
	"ductor/docker/homes"
)

// SessionHome is the home of a session in a container.
type SessionHome = homes.Home

// homeCache stores which homes are prepared. Safe for concurrent use.
type homeCache struct {
	mu   sync.Mutex
	made map[homeKey]string // prepared homes; the value changes if the container restarts or a seed changes
}

// homeKey identifies the seeds of one agent in one home. If agent is empty, it identifies the seeds that belong to no
// agent.
type homeKey struct {
	home  string
	agent cli.Agent
}

func (c *homeCache) has(f homeKey, state string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[f] == state
}

func (c *homeCache) store(f homeKey, state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[homeKey]string{}
	}
	c.made[f] = state
}

func (c *homeCache) drop(home string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.made, func(f homeKey, _ string) bool { return f.home == home })
}

// Home prepares a directory in the container as the home of a session, and returns its path. It creates the container
// if necessary. It copies the HomeSeeds that belong to no agent into the home, but does not replace files that are at
// least as new. If the home is already prepared, Home only sends one request to the engine. The home exists until
// ForgetHome or Engine.Forget removes it.
func (l *Launcher) Home(ctx context.Context, session string) (dir string, err error) {
	if session == "" {
		return "", errors.New("a home in the sandbox: the session has no name")
	}
	dir = homesDir + "/" + host.HomeName(session)
	l.touch()
	return dir, l.prepareHome(ctx, homeKey{home: dir}, seedsOf("", l.opts.HomeSeeds))
}

// copyLogin copies the agent's log-in files into the home of the command. It copies nothing for a probe (see
// cli.Purpose.Mode), because probes need no log-in.
func (l *Launcher) copyLogin(ctx context.Context, cmd cli.Command) error {
	if cmd.For.Mode == "" || cmd.For.Agent == "" {
		return nil
	}
	home, all := cli.Variable(cmd.Env, "HOME"), l.opts.HomeSeeds
	if home == homeDir {
		all = l.opts.Seeds
	}
	if seeds := seedsOf(cmd.For.Agent, all); len(seeds) > 0 {
		return l.prepareHome(ctx, homeKey{home, cmd.For.Agent}, seeds)
	}
	return nil
}

// prepareHome copies the seeds that are newer than the files in a home. It creates the container and the home if
// needed.
func (l *Launcher) prepareHome(ctx context.Context, f homeKey, seeds []Seed) error {
	state, err := seedState(seeds)
	if err != nil {
		return err
	}
	start, err := l.remote.startID(ctx)
	if err != nil {
		return err
	}
	if start != "" && l.homes.has(f, start+state) {
		return nil
	}
	if err := l.remote.ensure(ctx); err != nil {
		return err
	}
	if start, err = l.remote.startID(ctx); err != nil {
		return err
	}
	s, err := newSeedArchive(l.opts.User)
	if err == nil {
		err = s.addAll(seeds)
	}
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("pack the seeds of a home: %w", err)
	}
	if _, err := l.remote.callHomes(ctx, &s.raw, path.Dir(f.home), homes.Make, path.Base(f.home)); err != nil {
		return err
	}
	l.homes.store(f, start+state)
	return nil
}

// seedState returns a digest that changes if a seed changes.
func seedState(seeds []Seed) (string, error) {
	var state bytes.Buffer
	for _, seed := range seeds {
		err := eachFile(seed, func(file, _ string, info fs.FileInfo) error {
			fmt.Fprintf(&state, "%q %q %d %d\n", seed.To, file, info.Size(), info.ModTime().UnixNano())
			return nil
		})
		if err != nil {
			return "", seedError(seed, err)
		}
	}
	return digest(state.Bytes()), nil
}

// eachFile calls visit for each regular file of a seed, with the file's path in the home. If the seed itself is a link,
// eachFile follows it.
func eachFile(seed Seed, visit func(file, to string, info fs.FileInfo) error) error {
	from, err := filepath.EvalSymlinks(seed.From)
	if seed.Optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return walk(from, func(file, below string, info fs.FileInfo) error {
		return visit(file, path.Join(filepath.ToSlash(seed.To), below), info)
	})
}

func seedError(seed Seed, err error) error {
	return &Error{Reason: fmt.Sprintf("%s cannot be copied into the sandbox", seed.From),
		Fix: "correct it in the configuration", Err: err}
}

// SessionHomes lists the homes of sessions. It does not create or start the container. If the container is not running,
// the error is an *Error that matches runner.ErrNoEnvironment.
func (l *Launcher) SessionHomes(ctx context.Context) ([]SessionHome, error) {
	return l.remote.callHomes(ctx, nil, homesDir, homes.List)
}

// ForgetHome removes the home of a session. session is the session's name, or a name from SessionHomes. If there is no
// such home, ForgetHome returns nil. The container must be running.
func (l *Launcher) ForgetHome(ctx context.Context, session string) error {
	if session == "" {
		return errors.New("forget a home in the sandbox: the session has no name")
	}
	name := host.HomeName(session)
	l.homes.drop(homesDir + "/" + name)
	_, err := l.remote.callHomes(ctx, nil, homesDir, homes.Forget, name)
	return err
}

// startID returns a text that changes when the container is restarted or replaced. It returns "" if the container is
// not running.
func (p *remote) startID(ctx context.Context) (string, error) {
	c, there, err := p.engine.inspect(ctx, p.name)
	if err != nil || !there || !c.State.Running || c.State.Paused {
		return "", err
	}
	return c.ID + " " + c.State.StartedAt + " ", nil
}

const maxAnswer = 4 << 20

// callHomes runs an action of package homes in the container.
func (p *remote) callHomes(ctx context.Context, in *bytes.Buffer, dir string, args ...string) ([]homes.Home, error) {
	answer, err := p.callRunner(ctx, in, nil, append([]string{homes.Verb, dir}, args...)...)
	if err == nil && answer.Error != "" {
		err = &Error{Reason: "a home in the sandbox cannot be stored (" + answer.Error + ")"}
		if isFull(err) {
			err = p.engine.diskFullError(err)
		}
	}
	return answer.Homes, err
}

// callRunner runs ductor-runner in the container, and decodes the answer, one line of JSON.
func (p *remote) callRunner(ctx context.Context, in *bytes.Buffer, env []string, args ...string) (answer homes.Answer,
	err error) {
	err = p.runProgram(ctx, in, env, args, func(out io.Reader) error {
		raw, err := io.ReadAll(io.LimitReader(out, maxAnswer))
		if err != nil {
			return err
		}
		return versionError(json.Unmarshal(raw, &answer))
	})
	return answer, err
}

// errVersion means that ductor cannot parse an answer, because the ductor-runner in the container has another version.
var errVersion = errors.New("an answer of another version")

func versionError(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errVersion, err)
	}
	return nil
}

// runProgram runs ductor-runner in the container with the given standard input, and passes its output to read.
func (p *remote) runProgram(ctx context.Context, input *bytes.Buffer, env, args []string,
	read func(io.Reader) error) error {
	ctx, cancel := p.engine.workContext(ctx)
	defer cancel()
	conn, err := p.exec(ctx, env, args...)
	if err != nil {
		return cmp.Or(p.checkRunning(ctx), p.engine.describe("start a program in the sandbox", err))
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var sending sync.WaitGroup
	if input != nil {
		sending.Go(func() { _, _ = input.WriteTo(conn) }) // the program reports an error if input is missing
	}
	err = read(conn)
	_ = conn.Close() // close the connection early, because the whole answer was read
	sending.Wait()
	switch {
	case ctx.Err() != nil:
		return p.engine.describe("see to files in the sandbox", context.Cause(ctx))
	case errors.Is(err, errVersion):
		return &Error{
			Reason: "the sandbox's container contains another version of ductor-runner",
			Fix:    "it is replaced as soon as nothing runs in it", Err: err,
		}
	case err != nil:
		return p.engine.describe("see to files in the sandbox", err)
	}
	return nil
}
