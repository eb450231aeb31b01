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
	"slices"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
)

// maxBrought is how many bytes one Bring may copy.
const maxBrought = 256 << 20

// broughtCache remembers which files and directories are in the container. Safe for concurrent use.
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
	had, there := c.files[file]
	return c.id == id && there && had == v
}

// last is the container to which something was brought last; empty if nothing was.
func (c *broughtCache) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
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

func (c *broughtCache) forget(files []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, file := range files {
		delete(c.files, file)
	}
}

// Bring sees to it that the container has these files of this machine at the same paths, for an agent to read: it
// copies them, and makes the container for it if need be. A directory is brought with the files that lie in it, the newest
// first, as far as they fit. Only files and directories below Options.Shared can be brought, 256 MB at a time; else the
// error is an *Error. They go with the container. What is there already costs one question to the engine, and
// none has to be answered.
func (l *Launcher) Bring(ctx context.Context, paths []string) error { return l.bring(ctx, paths, nil) }

// bring is Bring, which copies again those of old that are there: an agent may have changed them there.
func (l *Launcher) bring(ctx context.Context, paths, old []string) error {
	if len(paths) == 0 {
		return nil
	}
	l.touch()
	bundles, err := l.opts.pack(paths)
	defer func() {
		for _, b := range bundles {
			_ = b.root.Close() // it was only read
		}
	}()
	if err != nil {
		return err
	}
	c, there, err := l.place.engine.inspect(ctx, l.place.name)
	if isAway(err) && l.has(l.brought.last(), bundles) { // who speaks to the container says whether it is still there
		return nil
	}
	if err != nil {
		return err
	}
	l.brought.forget(old)
	if there && state(c, there) == nil && l.has(c.ID, bundles) {
		return nil
	}
	if err := l.place.make(ctx); err != nil {
		return err
	}
	if c, there, err = l.place.engine.inspect(ctx, l.place.name); err != nil {
		return err
	}
	if !there {
		return state(c, there)
	}
	if err := l.choose(c.ID, bundles); err != nil {
		return err
	}
	for _, b := range bundles {
		if err := l.load(ctx, c.ID, b); err != nil {
			return err
		}
	}
	return nil
}

// pack makes a bundle for each shared directory that paths are in. The bundles are to be closed, with an error too.
func (o Options) pack(paths []string) (bundles []*bundle, err error) {
	loads, err := o.sort(paths)
	if err != nil {
		return nil, err
	}
	for dir, below := range loads {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return bundles, cannotBring(dir, "its directory cannot be read", err)
		}
		b := &bundle{root: root, dir: dir}
		bundles = append(bundles, b)
		for _, at := range below {
			if err := b.want(at); err != nil {
				return bundles, err
			}
		}
	}
	return bundles, nil
}

// has says whether a container has all of the bundles.
func (l *Launcher) has(id string, bundles []*bundle) bool {
	return l.choose(id, bundles) == nil && !slices.ContainsFunc(bundles, (*bundle).any)
}

// choose picks of each bundle what a container does not have.
func (l *Launcher) choose(id string, bundles []*bundle) error {
	left := int64(maxBrought)
	for _, b := range bundles {
		known := func(below string, v version) bool { return l.brought.has(id, filepath.Join(b.dir, below), v) }
		if err := b.choose(known, &left); err != nil {
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

// load copies what was chosen to the same directory in the container.
func (l *Launcher) load(ctx context.Context, id string, b *bundle) error {
	if !b.any() {
		return nil
	}
	ctx, moves, done := l.place.engine.progress(ctx)
	defer done()
	out, in := io.Pipe()
	var packing sync.WaitGroup
	var packErr error
	packing.Go(func() { packErr = b.pack(in) })
	err := l.place.engine.api.CopyToContainer(ctx, id, b.dir, moves.of(out), container.CopyToContainerOptions{})
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

// bundle is files of one directory on their way. A directory among them has the version zero.
type bundle struct {
	root   *os.Root // no link leads out of it
	dir    string
	named  []item // must arrive
	found  []item // lie in a directory that was named; newest first
	chosen []item // to be copied
}

type item struct {
	below string
	version
}

func (i item) isDir() bool { return i.version == version{} }

// want takes a file into the bundle, or a directory with the files in it.
func (b *bundle) want(below string) error {
	info, err := b.look(below)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		b.named = append(b.named, item{below, version{info.Size(), info.ModTime()}})
		return nil
	}
	b.named = append(b.named, item{below: below})
	entries, err := fs.ReadDir(b.root.FS(), below)
	if err != nil {
		return cannotBring(filepath.Join(b.dir, below), "it cannot be read", err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			b.found = append(b.found, item{path.Join(below, e.Name()), version{info.Size(), info.ModTime()}})
		}
	}
	slices.SortStableFunc(b.found, func(x, y item) int { return y.when.Compare(x.when) })
	return nil
}

// look says what lies below the directory. It follows no link, not even to another place below it.
func (b *bundle) look(below string) (info fs.FileInfo, err error) {
	file := filepath.Join(b.dir, below)
	for i, c := range below + "/" {
		if c != '/' {
			continue
		}
		info, err = b.root.Lstat(below[:i])
		whole := i == len(below)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, cannotBring(file, "it is not there", err)
		case err != nil:
			return nil, cannotBring(file, "it cannot be read", err)
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, cannotBring(file, "a link is on the way to it", nil)
		case !info.IsDir() && !(whole && info.Mode().IsRegular()):
			return nil, cannotBring(file, "it is no file", nil)
		}
	}
	return info, nil
}

// choose picks what is not known to be there, as long as bytes are left.
func (b *bundle) choose(known func(below string, v version) bool, left *int64) error {
	b.chosen = nil
	for _, i := range b.named {
		if known(i.below, i.version) {
			continue
		}
		if *left -= i.size; *left < 0 {
			return cannotBring(filepath.Join(b.dir, i.below), fmt.Sprintf("more than %d MB at a time", maxBrought>>20), nil)
		}
		b.chosen = append(b.chosen, i)
	}
	for _, i := range b.found {
		if !slices.Contains(b.named, i) && !known(i.below, i.version) && i.size <= *left {
			*left -= i.size
			b.chosen = append(b.chosen, i)
		}
	}
	return nil
}

// any says whether something is to be copied.
func (b *bundle) any() bool { return len(b.chosen) > 0 }

func (b *bundle) versions() map[string]version {
	all := map[string]version{}
	for _, i := range b.chosen {
		all[filepath.Join(b.dir, i.below)] = i.version
	}
	return all
}

// pack writes the archive and closes what it writes to.
func (b *bundle) pack(to *io.PipeWriter) error {
	archive := newTree(to, tar.Header{Mode: 0o755})
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

func (b *bundle) add(archive *tree, c item) error {
	if c.isDir() {
		return archive.parents(c.below + "/.")
	}
	if err := archive.parents(c.below); err != nil {
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
		err = cannotBring(filepath.Join(b.dir, c.below), "it changed while it was read", nil)
	}
	return err
}
