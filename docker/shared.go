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

// maxBringBytes limits how much one call of Bring copies.
const maxBringBytes = 256 << 20

// copiedFiles stores which files and directories were copied into the container. Safe for concurrent use.
type copiedFiles struct {
	mu    sync.Mutex
	id    string // ID of the container
	files map[string]version
}

type version struct {
	size int64
	when time.Time
}

func (c *copiedFiles) has(id, file string, v version) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	had, there := c.files[file]
	return c.id == id && there && had == v
}

// last returns the ID of the container into which files were last copied. It returns "" if there is none.
func (c *copiedFiles) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

func (c *copiedFiles) store(id string, files map[string]version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id != id {
		c.id, c.files = id, map[string]version{}
	}
	for file, v := range files {
		c.files[file] = v
	}
}

func (c *copiedFiles) forget(files []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, file := range files {
		delete(c.files, file)
	}
}

// Bring implements cli.Bringer. It creates the container if needed. For a directory, it copies the files directly in
// that directory, or only the newest of them if there are too many. It returns an *Error for a path outside of
// Options.Shared, or if the files in paths exceed maxBringBytes. The copies are removed with the container.
//
// If the container already has the copies, Bring only asks the engine whether the container still exists. If the engine
// does not answer, Bring returns nil nevertheless.
func (l *Launcher) Bring(ctx context.Context, paths []string) error { return l.bring(ctx, paths, nil) }

// bring copies files like Bring. It copies the files in refresh even if the container already has copies, because an
// agent may have changed the copies.
func (l *Launcher) bring(ctx context.Context, paths, refresh []string) error {
	if len(paths) == 0 {
		return nil
	}
	l.touch()
	bundles, err := l.opts.pack(paths)
	defer func() {
		for _, b := range bundles {
			_ = b.root.Close() // a directory that was only read cannot lose data
		}
	}()
	if err != nil {
		return err
	}
	c, there, err := l.remote.engine.inspect(ctx, l.remote.name)
	// If the engine is unreachable, assume that the copies still exist. If the container does not exist any more, the
	// next connection to it fails.
	if isUnreachable(err) && l.has(l.copied.last(), bundles) {
		return nil
	}
	if err != nil {
		return err
	}
	l.copied.forget(refresh)
	if there && stoppedError(c, there) == nil && l.has(c.ID, bundles) {
		return nil
	}
	if err := l.remote.ensure(ctx); err != nil {
		return err
	}
	if c, there, err = l.remote.engine.inspect(ctx, l.remote.name); err != nil {
		return err
	}
	if !there {
		return stoppedError(c, there)
	}
	if err := l.selectMissing(c.ID, bundles); err != nil {
		return err
	}
	for _, b := range bundles {
		if err := l.load(ctx, c.ID, b); err != nil {
			return err
		}
	}
	return nil
}

// pack returns a bundle for each shared directory that contains some of paths. The caller must close the roots of all
// returned bundles, even if pack returns an error.
func (o Options) pack(paths []string) (bundles []*bundle, err error) {
	loads, err := o.groupByDir(paths)
	if err != nil {
		return nil, err
	}
	for dir, below := range loads {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return bundles, bringError(dir, "its directory cannot be read", err)
		}
		b := &bundle{root: root, dir: dir}
		bundles = append(bundles, b)
		for _, at := range below {
			if err := b.addPath(at); err != nil {
				return bundles, err
			}
		}
	}
	return bundles, nil
}

func (l *Launcher) has(id string, bundles []*bundle) bool {
	return l.selectMissing(id, bundles) == nil && !slices.ContainsFunc(bundles, (*bundle).hasSelected)
}

// selectMissing selects those files in the bundles that are missing in a container.
func (l *Launcher) selectMissing(id string, bundles []*bundle) error {
	left := int64(maxBringBytes)
	for _, b := range bundles {
		known := func(below string, v version) bool { return l.copied.has(id, filepath.Join(b.dir, below), v) }
		if err := b.selectMissing(known, &left); err != nil {
			return err
		}
	}
	return nil
}

// groupByDir returns the paths for each shared directory, relative to that directory.
func (o Options) groupByDir(paths []string) (map[string][]string, error) {
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
		return nil, bringError(file, "it is not in a directory of ductor's that sandboxes see", nil)
	}
	return loads, nil
}

func bringError(file, why string, err error) error {
	return &Error{Reason: fmt.Sprintf("the file %s cannot be brought into the sandbox: %s", file, why), Err: err}
}

// load copies the bundle's selected files into the container, to the same paths.
func (l *Launcher) load(ctx context.Context, id string, b *bundle) error {
	if !b.hasSelected() {
		return nil
	}
	ctx, moves, done := l.remote.engine.progressContext(ctx)
	defer done()
	out, in := io.Pipe()
	var packing sync.WaitGroup
	var packErr error
	packing.Go(func() { packErr = b.pack(in) })
	err := l.remote.engine.api.CopyToContainer(ctx, id, b.dir, moves.track(out), container.CopyToContainerOptions{})
	_ = out.CloseWithError(io.ErrClosedPipe) // stops pack if it is still writing
	packing.Wait()
	var own *Error
	if errors.As(packErr, &own) {
		return own
	}
	if err != nil {
		return l.remote.engine.describe("copy files into the sandbox", err)
	}
	l.copied.store(id, b.versions())
	return nil
}

// bundle lists files and directories of one shared directory. Bring copies them into the container if the container
// does not contain the current versions.
type bundle struct {
	root     *os.Root // the shared directory; does not follow links out of it
	dir      string
	named    []item // the paths that the caller named; they must be copied
	found    []item // files in named directories, newest first; copied only within a size limit
	selected []item // items to copy now
}

type item struct {
	below   string
	version version // zero for a directory
}

func (i item) isDir() bool { return i.version == version{} }

// addPath adds a file, or a directory with the files directly in it.
func (b *bundle) addPath(below string) error {
	info, err := b.lstat(below)
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
		return bringError(filepath.Join(b.dir, below), "it cannot be read", err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			b.found = append(b.found, item{path.Join(below, e.Name()), version{info.Size(), info.ModTime()}})
		}
	}
	slices.SortStableFunc(b.found, func(x, y item) int { return y.version.when.Compare(x.version.when) })
	return nil
}

// lstat is like os.Root.Lstat, but returns an error if any part of the path is a link.
func (b *bundle) lstat(below string) (info fs.FileInfo, err error) {
	file := filepath.Join(b.dir, below)
	for i, c := range below + "/" {
		if c != '/' {
			continue
		}
		info, err = b.root.Lstat(below[:i])
		whole := i == len(below)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, bringError(file, "it is not there", err)
		case err != nil:
			return nil, bringError(file, "it cannot be read", err)
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, bringError(file, "a link is on the way to it", nil)
		case !info.IsDir() && !(whole && info.Mode().IsRegular()):
			return nil, bringError(file, "it is no file", nil)
		}
	}
	return info, nil
}

// selectMissing selects the files for which hasCopy returns false. budget is the number of bytes that may still be
// copied; selectMissing subtracts the size of the selected files. If a file does not fit, selectMissing skips it. But
// if the caller named that file, selectMissing returns an error.
func (b *bundle) selectMissing(hasCopy func(below string, v version) bool, budget *int64) error {
	b.selected = nil
	for _, i := range b.named {
		if hasCopy(i.below, i.version) {
			continue
		}
		if *budget -= i.version.size; *budget < 0 {
			return bringError(filepath.Join(b.dir, i.below),
				fmt.Sprintf("more than %d MB at a time", maxBringBytes>>20), nil)
		}
		b.selected = append(b.selected, i)
	}
	for _, i := range b.found {
		if !slices.Contains(b.named, i) && !hasCopy(i.below, i.version) && i.version.size <= *budget {
			*budget -= i.version.size
			b.selected = append(b.selected, i)
		}
	}
	return nil
}

func (b *bundle) hasSelected() bool { return len(b.selected) > 0 }

func (b *bundle) versions() map[string]version {
	all := map[string]version{}
	for _, i := range b.selected {
		all[filepath.Join(b.dir, i.below)] = i.version
	}
	return all
}

// pack writes the selected files as an archive, and closes the writer.
func (b *bundle) pack(to *io.PipeWriter) error {
	archive := newTree(to, tar.Header{Mode: 0o755})
	for _, c := range b.selected {
		if err := b.writeItem(archive, c); err != nil {
			_ = to.CloseWithError(err) // never fails
			return err
		}
	}
	err := archive.Close()
	_ = to.CloseWithError(err) // nil means EOF
	return err
}

func (b *bundle) writeItem(archive *tree, c item) error {
	if c.isDir() {
		return archive.parents(c.below + "/.")
	}
	if err := archive.parents(c.below); err != nil {
		return err
	}
	f, err := b.root.Open(c.below)
	if err != nil {
		return bringError(filepath.Join(b.dir, c.below), "it cannot be read", err)
	}
	defer f.Close()
	// The file may have been replaced meanwhile.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return bringError(filepath.Join(b.dir, c.below), "it is no file", err)
	}
	h := &tar.Header{Name: c.below, Typeflag: tar.TypeReg, Mode: 0o444, Size: c.version.size,
		ModTime: c.version.when}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(archive, io.LimitReader(f, c.version.size))
	if err == nil && n < c.version.size {
		err = bringError(filepath.Join(b.dir, c.below), "it changed while it was read", nil)
	}
	return err
}
