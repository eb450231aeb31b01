package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
)

// maxBrought is how many bytes one Bring may copy.
const maxBrought = 256 << 20

// makeShared makes the directories that are mounted, so that a new ductor can have empty ones.
func (p *place) makeShared() error {
	if p.engine.remote {
		return nil
	}
	for _, dir := range p.opts.Shared {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return &Error{Reason: fmt.Sprintf("the directory %s cannot be made, which the sandbox is to see", dir), Err: err}
		}
	}
	return nil
}

// broughtCache remembers which files are in the container. Safe for concurrent use.
type broughtCache struct {
	mu    sync.Mutex
	id    string // of the container
	files map[string]version
}

type version struct {
	size int64
	when time.Time
}

func (c *broughtCache) has(id, file string, v version) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id == id && c.files[file] == v
}

func (c *broughtCache) put(id string, files map[string]version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id != id {
		c.id, c.files = id, map[string]version{}
	}
	for file, v := range files {
		c.files[file] = v
	}
}

// Bring sees to it that the container has these files of this machine at the same paths, for an agent to read: it
// copies them when the engine is on another machine, and makes the container for it if need be. On this machine they
// are seen anyway. Only regular files in Options.Shared can be brought, 256 MB at a time; else the error is an
// *Error. They go with the container.
func (l *Launcher) Bring(ctx context.Context, paths []string) error {
	if !l.place.engine.remote || len(paths) == 0 {
		return nil
	}
	l.touch()
	loads, err := l.opts.sort(paths)
	if err != nil {
		return err
	}
	if err := l.place.make(ctx); err != nil {
		return err
	}
	c, there, err := l.place.engine.inspect(ctx, l.place.name)
	if err != nil {
		return err
	}
	if !there {
		return state(c, there)
	}
	left := int64(maxBrought)
	for dir, files := range loads {
		if err := l.load(ctx, c.ID, dir, files, &left); err != nil {
			return err
		}
	}
	return nil
}

// sort finds the shared directory of each file; files are below it then.
func (o Options) sort(paths []string) (map[string][]string, error) {
	loads := map[string][]string{}
next:
	for _, file := range paths {
		for _, dir := range o.Shared {
			below, err := filepath.Rel(dir, file)
			if err == nil && below != "." && filepath.IsLocal(below) {
				loads[dir] = append(loads[dir], below)
				continue next
			}
		}
		return nil, cannotBring(file, "it is not in a directory of ductor's that sandboxes see", nil)
	}
	return loads, nil
}

func cannotBring(file, why string, err error) error {
	return &Error{Reason: fmt.Sprintf("the file %s cannot be brought into the sandbox: %s", file, why), Err: err}
}

// load copies files below a directory to the same directory in the container.
func (l *Launcher) load(ctx context.Context, id, dir string, files []string, left *int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return cannotBring(dir, "its directory cannot be read", err)
	}
	defer root.Close()
	b := &bundle{root: root, dir: dir, made: map[string]bool{}, left: left}
	for _, below := range files {
		if err := b.choose(below, func(v version) bool { return l.brought.has(id, filepath.Join(dir, below), v) }); err != nil {
			return err
		}
	}
	if len(b.chosen) == 0 {
		return nil
	}
	ctx, moves, done := l.place.engine.progress(ctx)
	defer done()
	out, in := io.Pipe()
	var packing sync.WaitGroup
	var packErr error
	packing.Go(func() { packErr = b.pack(in) })
	err = l.place.engine.api.CopyToContainer(ctx, id, dir, moves.of(out), container.CopyToContainerOptions{})
	_ = out.CloseWithError(io.ErrClosedPipe) // ends the packing, if it goes on
	packing.Wait()
	var own *Error
	if errors.As(packErr, &own) {
		return own
	}
	if err != nil {
		return l.place.engine.failed("copy files into the sandbox", err)
	}
	l.brought.put(id, b.versions())
	return nil
}

// bundle is files of one directory on their way.
type bundle struct {
	root   *os.Root // no link leads out of it
	dir    string
	chosen []chosen
	made   map[string]bool // directories in the archive
	left   *int64
}

type chosen struct {
	below string
	version
}

// choose takes a file into the bundle, unless it is known to be there.
func (b *bundle) choose(below string, known func(version) bool) error {
	file := filepath.Join(b.dir, below)
	info, err := b.root.Stat(below)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cannotBring(file, "it is not there", err)
	case err != nil:
		return cannotBring(file, "it cannot be read, or lies outside of its directory", err)
	case !info.Mode().IsRegular():
		return cannotBring(file, "it is no file", nil)
	}
	v := version{info.Size(), info.ModTime()}
	if known(v) {
		return nil
	}
	if *b.left -= v.size; *b.left < 0 {
		return cannotBring(file, fmt.Sprintf("more than %d MB at a time", maxBrought>>20), nil)
	}
	b.chosen = append(b.chosen, chosen{filepath.ToSlash(below), v})
	return nil
}

func (b *bundle) versions() map[string]version {
	all := map[string]version{}
	for _, c := range b.chosen {
		all[filepath.Join(b.dir, c.below)] = c.version
	}
	return all
}

// pack writes the archive and closes what it writes to.
func (b *bundle) pack(to *io.PipeWriter) error {
	archive := tar.NewWriter(to)
	for _, c := range b.chosen {
		if err := b.add(archive, c); err != nil {
			_ = to.CloseWithError(err) // never fails
			return err
		}
	}
	err := archive.Close()
	_ = to.CloseWithError(err) // nil is the end
	return err
}

func (b *bundle) add(archive *tar.Writer, c chosen) error {
	if err := b.parents(archive, c.below); err != nil {
		return err
	}
	f, err := b.root.Open(c.below)
	if err != nil {
		return cannotBring(filepath.Join(b.dir, c.below), "it cannot be read", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // it was another a moment ago
		return cannotBring(filepath.Join(b.dir, c.below), "it is no file", err)
	}
	h := &tar.Header{Name: c.below, Typeflag: tar.TypeReg, Mode: 0o444, Size: c.size, ModTime: c.when}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(archive, io.LimitReader(f, c.size))
	if err == nil && n < c.size {
		err = cannotBring(filepath.Join(b.dir, c.below), "it changed meanwhile", nil)
	}
	return err
}

func (b *bundle) parents(archive *tar.Writer, below string) error {
	dir := path.Dir(below)
	if dir == "." || b.made[dir] {
		return nil
	}
	if err := b.parents(archive, dir); err != nil {
		return err
	}
	b.made[dir] = true
	return archive.WriteHeader(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755})
}
