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

// SessionHome is a home of a session in a container.
type SessionHome = homes.Home

// homeCache remembers which homes are as they should be. Safe for concurrent use.
type homeCache struct {
	mu   sync.Mutex
	made map[furnished]string // of which life of the container, and from which seeds
}

// furnished is a home for an agent; for no agent it is the home itself.
type furnished struct {
	home  string
	agent cli.Agent
}

func (c *homeCache) has(f furnished, state string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[f] == state
}

func (c *homeCache) put(f furnished, state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[furnished]string{}
	}
	c.made[f] = state
}

func (c *homeCache) drop(home string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.made, func(f furnished, _ string) bool { return f.home == home })
}

// Home makes a home for a session in the container, and the container if need be, and gives the home's directory in
// there. Options.HomeSeeds that are no agent's are copied into it, where they are newer than what it holds. A home that is as it should
// be costs one question to the engine. It stays until ForgetHome, or Engine.Forget of the whole sandbox.
func (l *Launcher) Home(ctx context.Context, session string) (dir string, err error) {
	if session == "" {
		return "", errors.New("a home in the sandbox: the session has no name")
	}
	dir = homesDir + "/" + host.HomeName(session)
	l.touch()
	return dir, l.furnish(ctx, furnished{home: dir}, seedsOf("", l.opts.HomeSeeds))
}

// logIn copies what an agent needs into the home that it is started with: of all log-ins, its own. A probe does
// without.
func (l *Launcher) logIn(ctx context.Context, cmd cli.Command) error {
	if cmd.For.Mode == "" || cmd.For.Agent == "" {
		return nil
	}
	home, all := cli.Variable(cmd.Env, "HOME"), l.opts.HomeSeeds
	if home == homeDir {
		all = l.opts.Seeds
	}
	if seeds := seedsOf(cmd.For.Agent, all); len(seeds) > 0 {
		return l.furnish(ctx, furnished{home, cmd.For.Agent}, seeds)
	}
	return nil
}

// furnish has seeds in a home, where they are newer than what it holds, and the home and the container if need be.
func (l *Launcher) furnish(ctx context.Context, f furnished, seeds []Seed) error {
	state, err := seedState(seeds)
	if err != nil {
		return err
	}
	life, err := l.place.life(ctx)
	if err != nil {
		return err
	}
	if life != "" && l.homes.has(f, life+state) {
		return nil
	}
	if err := l.place.make(ctx); err != nil {
		return err
	}
	if life, err = l.place.life(ctx); err != nil {
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
	if _, err := l.place.order(ctx, &s.raw, path.Dir(f.home), homes.Make, path.Base(f.home)); err != nil {
		return err
	}
	l.homes.put(f, life+state)
	return nil
}

// seedState changes with the seeds.
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

// eachFile finds the regular files of a seed, with their places below the home. A seed that is a link itself is what
// it leads to.
func eachFile(seed Seed, do func(file, to string, info fs.FileInfo) error) error {
	from, err := filepath.EvalSymlinks(seed.From)
	if seed.Optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return walk(from, func(file, below string, info fs.FileInfo) error {
		return do(file, path.Join(filepath.ToSlash(seed.To), below), info)
	})
}

func seedError(seed Seed, err error) error {
	return &Error{Reason: fmt.Sprintf("%s cannot be copied into the sandbox", seed.From), Fix: "correct it in the configuration", Err: err}
}

// SessionHomes lists the homes of sessions, without making or starting anything: a container that does not run is an
// *Error that matches runner.ErrNoEnvironment.
func (l *Launcher) SessionHomes(ctx context.Context) ([]SessionHome, error) {
	return l.place.order(ctx, nil, homesDir, homes.List)
}

// ForgetHome removes a session's home, named as the session was or as SessionHomes names it. The container must run,
// as for SessionHomes. One that is not there is no error.
func (l *Launcher) ForgetHome(ctx context.Context, session string) error {
	if session == "" {
		return errors.New("forget a home in the sandbox: the session has no name")
	}
	name := host.HomeName(session)
	l.homes.drop(homesDir + "/" + name)
	_, err := l.place.order(ctx, nil, homesDir, homes.Forget, name)
	return err
}

// life tells one life of the container from all others; empty when it does not run.
func (p *place) life(ctx context.Context) (string, error) {
	c, there, err := p.engine.inspect(ctx, p.name)
	if err != nil || !there || !c.State.Running || c.State.Paused {
		return "", err
	}
	return c.ID + " " + c.State.StartedAt + " ", nil
}

const maxAnswer = 4 << 20

// order has the hand in the container do something with the homes in a directory.
func (p *place) order(ctx context.Context, in *bytes.Buffer, dir string, args ...string) ([]homes.Home, error) {
	answer, err := p.hand(ctx, in, nil, append([]string{homes.Verb, dir}, args...)...)
	if err == nil && answer.Error != "" {
		err = &Error{Reason: "a home in the sandbox cannot be kept (" + answer.Error + ")"}
		if isFull(err) {
			err = p.engine.full(err)
		}
	}
	return answer.Homes, err
}

// hand has our program in the container do something that is answered by a line of JSON.
func (p *place) hand(ctx context.Context, in *bytes.Buffer, env []string, args ...string) (answer homes.Answer, err error) {
	err = p.converse(ctx, in, env, args, func(out io.Reader) error {
		raw, err := io.ReadAll(io.LimitReader(out, maxAnswer))
		if err != nil {
			return err
		}
		return asVersion(json.Unmarshal(raw, &answer))
	})
	return answer, err
}

// errVersion says that our program in the container answered what this one does not understand.
var errVersion = errors.New("an answer of another version")

func asVersion(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errVersion, err)
	}
	return nil
}

// converse has our program in the container do something, gives it what in holds, and has read take what it says.
func (p *place) converse(ctx context.Context, in *bytes.Buffer, env, args []string, read func(io.Reader) error) error {
	ctx, cancel := p.engine.work(ctx)
	defer cancel()
	conn, err := p.exec(ctx, env, args...)
	if err != nil {
		return cmp.Or(p.trouble(ctx), p.engine.failed("start a program in the sandbox", err))
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var sending sync.WaitGroup
	if in != nil {
		sending.Go(func() { _, _ = in.WriteTo(conn) }) // what does not arrive is missed there, and said
	}
	err = read(conn)
	_ = conn.Close() // all that was asked for was read
	sending.Wait()
	switch {
	case ctx.Err() != nil:
		return p.engine.failed("see to files in the sandbox", context.Cause(ctx))
	case errors.Is(err, errVersion):
		return &Error{
			Reason: "the sandbox's container holds another version of ductor-runner", Fix: "it is replaced as soon as nothing runs in it", Err: err,
		}
	case err != nil:
		return p.engine.failed("see to files in the sandbox", err)
	}
	return nil
}
