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
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"ductor/cli"
)

// Labels of the containers, volumes and images that ductor creates.
const (
	labelOwner    = "ductor.owner"    // on containers, volumes and images: the owner
	labelName     = "ductor.name"     // on containers and volumes: name of the sandbox
	labelUse      = "ductor.use"      // on volumes other than homes: the volume's purpose, such as useShared
	labelPolicy   = "ductor.policy"   // on containers: digest of the complete configuration
	labelSettings = "ductor.settings" // on containers: digest of the configuration without the image
	labelRunner   = "ductor.runner"   // on containers and images: digest of ductor-runner
	labelBase     = "ductor.base"     // on images: ID of the base image
)

// useShared is the value of labelUse for volumes with copies of files in Options.Shared.
const useShared = "shared"

// Names of the images that ductor makes, and may remove. Each has a tag with a digest of everything that the image is
// made from.
const (
	fittedImages = "ductor/sandbox"
	builtImages  = "ductor/agents"
)

// fittedImage is an image to which ductor has added ductor-runner.
type fittedImage struct {
	base string // ID of the base image
	// source identifies the base image. It is the ID of a configured image. For an image that ductor builds, source is
	// the name of the image, which contains a digest of the build's files.
	source string
	tag    string
	runner string // digest of ductor-runner
	path   string // PATH in the image
}

// fit returns an image that consists of the configured image, ductor-runner, and directories for the agents' user. It
// makes one such image for each combination of image, ductor-runner and user. If the configured image is missing, fit
// builds or fetches it first.
func (e *Engine) fit(ctx context.Context, o Options, from *sources) (fittedImage, error) {
	if err := o.makeRunner(ctx); err != nil {
		return fittedImage{}, err
	}
	if f, err := o.openRunner(); err != nil { // find problems before a long build
		return fittedImage{}, err
	} else if err := errors.Join(checkRunner(f, ""), f.Close()); err != nil {
		return fittedImage{}, err
	}
	name, err := from.baseName(o)
	if err != nil {
		return fittedImage{}, err
	}
	info, err := e.base(ctx, o, name)
	if err != nil {
		return fittedImage{}, err
	}
	f := fittedImage{base: info.ID, source: info.ID, path: defaultPath}
	if o.Build != nil {
		f.source = name
	}
	if f.runner, err = from.runner(o, info.Architecture); err != nil {
		return fittedImage{}, err
	}
	if info.Config != nil {
		f.path = pathOf(info.Config.Env)
	}
	f.tag = fittedTag(f.base, f.runner, o.User)
	_, err = e.ensureImage(ctx, f.tag, func() error { return e.derive(ctx, o, f) })
	return f, e.describe("make the sandbox's image", err)
}

func fittedTag(base, runner, user string) string {
	return fittedImages + ":" + digest([]byte(base), []byte(runner), []byte(user), []byte(tempDir))
}

func (e *Engine) image(ctx context.Context, name string) (image.InspectResponse, bool, error) {
	ctx, cancel := e.requestContext(ctx)
	defer cancel()
	info, err := e.api.ImageInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return info, false, nil
	}
	return info, err == nil, e.describe("look for the image "+name, err)
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

// base returns the configured image, which is the base of the image that ductor makes. If the configured image is
// missing, base builds or fetches it, unless the options forbid that.
func (e *Engine) base(ctx context.Context, o Options, name string) (image.InspectResponse, error) {
	return e.ensureImage(ctx, name, func() error {
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

// ensureImage returns an image. If the image does not exist, ensureImage first calls produce, which must create the
// image. Concurrent callers share one call of produce.
func (e *Engine) ensureImage(ctx context.Context, name string, produce func() error) (image.InspectResponse, error) {
	info, there, err := e.image(ctx, name)
	if err != nil || there {
		return info, err
	}
	release, err := e.claim(ctx, name)
	if err != nil {
		return image.InspectResponse{}, e.describe("make the sandbox's image", err)
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

// claim waits until no other caller makes the image. Until the caller calls release, other calls of claim wait.
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

func (e *Engine) isMaking(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.making[name] != nil
}

func (e *Engine) noImage(name string) error {
	return &Error{Reason: fmt.Sprintf("Docker at %s has no image %s", e.host, name),
		Fix: "fetch it there: docker pull " + name}
}

// derive makes the image f.tag from f.base. It copies files into a container, and commits that container without
// starting it.
func (e *Engine) derive(ctx context.Context, o Options, f fittedImage) (err error) {
	program, err := os.ReadFile(o.Runner)
	if err != nil {
		return runnerError(err)
	}
	if digest(program) != f.runner {
		return &Error{Reason: "the program ductor-runner changed just now", Fix: "try again"}
	}
	ctx, cancel := e.workContext(ctx)
	defer cancel()
	c, err := e.api.ContainerCreate(ctx,
		&container.Config{Image: f.base, Cmd: []string{programFile}, Labels: map[string]string{labelOwner: o.Owner}},
		&container.HostConfig{NetworkMode: container.NetworkMode(NetworkNone)}, nil, nil, "")
	if err != nil {
		return fmt.Errorf("create a container of it: %w", err)
	}
	defer func() {
		done, cancel := e.cleanupContext(ctx)
		defer cancel()
		err = errors.Join(err, e.api.ContainerRemove(done, c.ID, container.RemoveOptions{Force: true}))
	}()
	_, err = e.api.ContainerStatPath(ctx, c.ID, tempDir)
	if err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("stat %s: %w", tempDir, err)
	}
	layer, err := layerOf(o, program, err != nil)
	if err != nil {
		return err
	}
	if err := e.api.CopyToContainer(ctx, c.ID, "/", layer, container.CopyToContainerOptions{}); err != nil {
		return fmt.Errorf("copy the runner: %w", err)
	}
	_, err = e.api.ContainerCommit(ctx, c.ID, container.CommitOptions{
		Reference: f.tag, Config: &container.Config{Labels: map[string]string{labelOwner: o.Owner, labelBase: f.base,
			labelRunner: f.runner}},
	})
	if err != nil {
		return fmt.Errorf("commit the image: %w", err)
	}
	return nil
}

// layerOf returns an archive of the files that ductor adds to an image. If noTemp is set, the archive also contains the
// directory for temporary files, because agents hang without one.
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
	ctx, moves, done := e.progressContext(ctx)
	defer done()
	body, err := e.api.ImagePull(ctx, name, image.PullOptions{})
	if err == nil {
		err = errors.Join(readProgress(moves.track(body)), body.Close())
	}
	return e.supplyError("fetch the image "+name, err)
}

// registry matches an engine's error about an unreachable registry. It captures the registry's host name.
var registry = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`https?://([^/"\s]+)[^:]*: .*dial `)
})

// supplyError describes why an image could not be built or fetched, and how to fix that.
func (e *Engine) supplyError(what string, err error) error {
	err = e.describe(what, err)
	var own *Error
	if !errors.As(err, &own) || own.Fix != "" {
		return err
	}
	own.Fix = "correct it, or see that the engine's machine reaches the network"
	if from := registry().FindStringSubmatch(own.Err.Error()); from != nil {
		own.Reason = fmt.Sprintf("Docker at %s could not %s: it does not reach %s (%s)", e.host, what, from[1],
			lastCause(own.Err))
	}
	return own
}

func (e *Engine) build(ctx context.Context, o Options, tag string) error {
	b := *o.Build
	files, err := b.context()
	if err != nil {
		return err
	}
	ctx, moves, done := e.progressContext(ctx)
	defer done()
	answer, err := e.api.ImageBuild(ctx, files, build.ImageBuildOptions{
		Tags: []string{tag}, Dockerfile: "Dockerfile", Remove: true, ForceRemove: true, BuildArgs: b.args(),
		Version:     build.BuilderV1,
		NetworkMode: string(b.Network), Labels: map[string]string{labelOwner: o.Owner},
	})
	if err == nil {
		err = errors.Join(readProgress(moves.track(answer.Body)), answer.Body.Close())
	}
	return e.supplyError("build the image of Dockerfile", err)
}

// readProgress reads the progress messages of an engine to their end. It returns the error that they contain, or nil.
func readProgress(r io.Reader) error {
	said := ""
	colour := regexp.MustCompile(`\x1b\[[0-9;]*m`) // engines print standard error in red
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
		if text := strings.TrimSpace(colour.ReplaceAllString(m.Stream, "")); text != "" &&
			!strings.HasPrefix(text, "--->") && !strings.HasPrefix(text, "Removing ") {
			said = lastLine(text)
		}
	}
}

// buildError returns the error of a build from the engine's text. If the text names the failed step, the error contains
// the last output of that step, and only the beginning of the step itself, which may have many lines.
func buildError(text, lastOutput string) error {
	step, failed := strings.CutPrefix(text, "The command '")
	if !failed || lastOutput == "" {
		return errors.New(text)
	}
	return &stepError{step: cli.Shorten(step, 60), said: cli.Shorten(lastOutput, 120)}
}

type stepError struct{ step, said string }

func (e *stepError) Error() string { return fmt.Sprintf("%s (in the step %s)", e.said, e.step) }

// digest returns a short hash of parts, for tags and names.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))[:24]
}
