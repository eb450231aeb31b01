package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"ductor/cli"
)

// The labels of what is ours in an engine.
const (
	labelOwner    = "ductor.owner"    // on containers, volumes and images
	labelName     = "ductor.name"     // on containers and volumes
	labelUse      = "ductor.use"      // on volumes that are no homes
	labelPolicy   = "ductor.policy"   // on containers: a digest of all that was asked of it
	labelSettings = "ductor.settings" // on containers: the same without its image
	labelRunner   = "ductor.runner"   // on containers and images: a digest of the program in it
	labelBase     = "ductor.base"     // on images: the image it was made of
)

// useShared is the use of a volume for files of ductor's own; see Options.Shared.
const useShared = "shared"

// The names of the images that are ours to remove; their tags are digests of what they were made of.
const (
	fittedImages = "ductor/sandbox"
	builtImages  = "ductor/agents"
)

// fitted is an image with our runner in it.
type fitted struct {
	base   string // the id of what it was made of
	asked  string // what was asked for: the name of what is built, which says of what, or base
	tag    string
	runner string // digest
	path   string // PATH in it
}

// fit makes what is needed of the image that is asked for: the runner in it, and directories of the right owner.
// It is made once for an image, a runner and a user.
func (e *Engine) fit(ctx context.Context, o Options, from *sources) (fitted, error) {
	if err := o.makeRunner(ctx); err != nil {
		return fitted{}, err
	}
	if f, err := o.openRunner(); err != nil { // before an image is built in vain
		return fitted{}, err
	} else if err := errors.Join(fits(f, ""), f.Close()); err != nil {
		return fitted{}, err
	}
	name, err := from.baseName(o)
	if err != nil {
		return fitted{}, err
	}
	info, err := e.base(ctx, o, name)
	if err != nil {
		return fitted{}, err
	}
	f := fitted{base: info.ID, asked: info.ID, path: defaultPath}
	if o.Build != nil {
		f.asked = name
	}
	if f.runner, err = from.runner(o, info.Architecture); err != nil {
		return fitted{}, err
	}
	if info.Config != nil {
		f.path = pathOf(info.Config.Env)
	}
	f.tag = fittedTag(f.base, f.runner, o.User)
	_, err = e.once(ctx, f.tag, func() error { return e.derive(ctx, o, f) })
	return f, e.failed("make the sandbox's image", err)
}

func fittedTag(base, runner, user string) string {
	return fittedImages + ":" + digest([]byte(base), []byte(runner), []byte(user), []byte(tempDir))
}

// image looks for an image; false if there is none.
func (e *Engine) image(ctx context.Context, name string) (image.InspectResponse, bool, error) {
	ctx, cancel := e.brief(ctx)
	defer cancel()
	info, err := e.api.ImageInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return info, false, nil
	}
	return info, err == nil, e.failed("look for the image "+name, err)
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func pathOf(env []string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			return value
		}
	}
	return defaultPath
}

// base finds the image that was asked for, and makes or fetches it if that was asked for too.
func (e *Engine) base(ctx context.Context, o Options, name string) (image.InspectResponse, error) {
	return e.once(ctx, name, func() error {
		switch {
		case o.Source != nil:
			return o.Source.supply(ctx, o, name, e)
		case o.Build != nil:
			return e.build(ctx, o, name)
		case o.Pull:
			return e.pull(ctx, name)
		}
		return e.noImage(name)
	})
}

// once gives an image, and makes it if it is not there. Other callers wait: it is made once.
func (e *Engine) once(ctx context.Context, name string, produce func() error) (image.InspectResponse, error) {
	info, there, err := e.image(ctx, name)
	if err != nil || there {
		return info, err
	}
	release, err := e.claim(ctx, name)
	if err != nil {
		return image.InspectResponse{}, e.failed("make the sandbox's image", err)
	}
	defer release()
	if info, there, err = e.image(ctx, name); err != nil || there {
		return info, err
	}
	if err := produce(); err != nil {
		return image.InspectResponse{}, err
	}
	info, there, err = e.image(ctx, name)
	if err == nil && !there {
		err = e.noImage(name)
	}
	return info, err
}

// claim makes the caller the only one who makes an image, until it releases it.
func (e *Engine) claim(ctx context.Context, name string) (release func(), err error) {
	for {
		e.mu.Lock()
		busy := e.making[name]
		if busy == nil {
			done := make(chan struct{})
			e.making[name] = done
			e.mu.Unlock()
			return func() {
				e.mu.Lock()
				delete(e.making, name)
				e.mu.Unlock()
				close(done)
			}, nil
		}
		e.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// isMaking says whether an image is being made.
func (e *Engine) isMaking(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.making[name] != nil
}

func (e *Engine) noImage(name string) error {
	return &Error{Reason: fmt.Sprintf("Docker at %s has no image %s", e.host, name), Fix: "fetch it there: docker pull " + name}
}

// derive makes the fitted image by changing a container that is never started.
func (e *Engine) derive(ctx context.Context, o Options, f fitted) (err error) {
	program, err := os.ReadFile(o.Runner)
	if err != nil {
		return unreadable(err)
	}
	if digest(program) != f.runner {
		return &Error{Reason: "the program ductor-runner changed just now", Fix: "try again"}
	}
	ctx, cancel := e.work(ctx)
	defer cancel()
	c, err := e.api.ContainerCreate(ctx, &container.Config{Image: f.base, Cmd: []string{programFile}, Labels: map[string]string{labelOwner: o.Owner}},
		&container.HostConfig{NetworkMode: container.NetworkMode(NetworkNone)}, nil, nil, "")
	if err != nil {
		return fmt.Errorf("make a container of it: %w", err)
	}
	defer func() {
		done, cancel := e.undo(ctx)
		defer cancel()
		err = errors.Join(err, e.api.ContainerRemove(done, c.ID, container.RemoveOptions{Force: true}))
	}()
	_, err = e.api.ContainerStatPath(ctx, c.ID, tempDir)
	if err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("look for %s: %w", tempDir, err)
	}
	layer, err := layerOf(o, program, err != nil)
	if err != nil {
		return err
	}
	if err := e.api.CopyToContainer(ctx, c.ID, "/", layer, container.CopyToContainerOptions{}); err != nil {
		return fmt.Errorf("copy the runner: %w", err)
	}
	_, err = e.api.ContainerCommit(ctx, c.ID, container.CommitOptions{
		Reference: f.tag, Config: &container.Config{Labels: map[string]string{labelOwner: o.Owner, labelBase: f.base, labelRunner: f.runner}},
	})
	if err != nil {
		return fmt.Errorf("keep the image: %w", err)
	}
	return nil
}

// layerOf is what is added to an image. One without a directory for temporary files gets that too: agents hang without it.
func layerOf(o Options, program []byte, noTemp bool) (io.Reader, error) {
	uid, gid, err := parseUser(o.User)
	if err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	t := tar.NewWriter(&raw)
	headers := []tar.Header{
		{Name: programDir, Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: stateDir, Typeflag: tar.TypeDir, Mode: 0o755, Uid: uid, Gid: gid},
		{Name: homeDir, Typeflag: tar.TypeDir, Mode: 0o700, Uid: uid, Gid: gid},
		{Name: runsDir, Typeflag: tar.TypeDir, Mode: 0o700, Uid: uid, Gid: gid},
		{Name: programFile, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))},
	}
	if noTemp {
		headers = append(headers, tar.Header{Name: tempDir, Typeflag: tar.TypeDir, Mode: 0o1777})
	}
	for _, h := range headers {
		h.Name = strings.TrimPrefix(h.Name, "/")
		if err := t.WriteHeader(&h); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := t.Write(program); err != nil {
				return nil, err
			}
		}
	}
	return &raw, t.Close()
}

func (e *Engine) pull(ctx context.Context, name string) error {
	ctx, moves, done := e.progress(ctx)
	defer done()
	body, err := e.api.ImagePull(ctx, name, image.PullOptions{})
	if err == nil {
		err = errors.Join(drain(moves.of(body)), body.Close())
	}
	return e.unsupplied("fetch the image "+name, err)
}

// registry matches, in an error of an engine, the host that the engine wanted to fetch an image from.
var registry = regexp.MustCompile(`https?://([^/"\s]+)[^:]*: .*dial `)

// unsupplied puts into words, and with what helps, why an image could not be made or fetched.
func (e *Engine) unsupplied(what string, err error) error {
	err = e.failed(what, err)
	var own *Error
	if !errors.As(err, &own) || own.Fix != "" {
		return err
	}
	own.Fix = "correct it, or see that the engine's machine reaches the network"
	if from := registry.FindStringSubmatch(own.Err.Error()); from != nil {
		own.Reason = fmt.Sprintf("Docker at %s could not %s: it does not reach %s (%s)", e.host, what, from[1], lastCause(own.Err))
	}
	return own
}

// build makes an image of a Dockerfile.
func (e *Engine) build(ctx context.Context, o Options, tag string) error {
	b := *o.Build
	files, err := b.context()
	if err != nil {
		return err
	}
	ctx, moves, done := e.progress(ctx)
	defer done()
	answer, err := e.api.ImageBuild(ctx, files, build.ImageBuildOptions{
		Tags: []string{tag}, Dockerfile: "Dockerfile", Remove: true, ForceRemove: true, BuildArgs: b.args(), Version: build.BuilderV1,
		NetworkMode: string(b.Network), Labels: map[string]string{labelOwner: o.Owner},
	})
	if err == nil {
		err = errors.Join(drain(moves.of(answer.Body)), answer.Body.Close())
	}
	return e.unsupplied("build the image of Dockerfile", err)
}

// drain reads what an engine tells of its progress, for the error that may be in it.
func drain(r io.Reader) error {
	said := ""
	colour := regexp.MustCompile(`\x1b\[[0-9;]*m`) // standard error is red
	for d := json.NewDecoder(r); ; {
		var m struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if m.Error != "" {
			return buildError(m.Error, said)
		}
		if text := strings.TrimSpace(colour.ReplaceAllString(m.Stream, "")); text != "" && !strings.HasPrefix(text, "--->") && !strings.HasPrefix(text, "Removing ") {
			said = lastLine(text)
		}
	}
}

// buildError prefers what a step of a build said last to the step itself, which may be many lines.
func buildError(text, said string) error {
	step, failed := strings.CutPrefix(text, "The command '")
	if !failed || said == "" {
		return errors.New(text)
	}
	return &stepError{step: cli.Shorten(step, 60), said: cli.Shorten(said, 120)}
}

// stepError is a step of a build that failed.
type stepError struct{ step, said string }

func (e *stepError) Error() string { return fmt.Sprintf("%s (in the step %s)", e.said, e.step) }

// digest is short, and good for a tag or a name.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))[:24]
}

// supply gets an image and sends it to another engine.
func (e *Engine) supply(ctx context.Context, o Options, name string, to *Engine) error {
	o.Source = nil
	if _, err := e.base(ctx, o, name); err != nil {
		return err
	}
	return e.Send(ctx, to, name)
}

// Send copies an image to another engine, for one that reaches no registry. An image that is there already, by its
// id, is not sent again.
func (e *Engine) Send(ctx context.Context, to *Engine, name string) error {
	here, has, err := e.image(ctx, name)
	if err == nil && !has {
		err = e.noImage(name)
	}
	if err != nil {
		return err
	}
	if there, has, err := to.image(ctx, name); err != nil || has && there.ID == here.ID {
		return err
	}
	ctx, moves, done := to.progress(ctx)
	defer done()
	saved, err := e.api.ImageSave(ctx, []string{name})
	if err != nil {
		return e.failed("save the image "+name, err)
	}
	defer saved.Close()
	loaded, err := to.api.ImageLoad(ctx, moves.of(saved))
	if err == nil {
		err = errors.Join(drain(moves.of(loaded.Body)), loaded.Body.Close())
	}
	return to.failed("load the image "+name, err)
}
