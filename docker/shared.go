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

// maxBringBytes limits the bytes that one call of Bring copies.
const maxBringBytes = 256 << 20

// copiedFiles remembers the files and directories that the container contains. Safe for concurrent use.
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

// last returns the ID of the container into which files were last copied, or "".
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

// Bring implements cli.Bringer. It creates the container if necessary. From a directory it takes the files directly
// inside, the newest first, as far as they fit. It returns an *Error for a path outside of Options.Shared, and for more
// than 256 MB. The copies are removed with the container.
//
// If the container already contains the copies, Bring sends a single request to the engine. In that case it even works
// while the engine does not answer.
func (l *Launcher) Bring(ctx context.Context, paths []string) error { return l.bring(ctx, paths, nil) }

// bring is like Bring. In addition, it replaces existing copies of the files in again, because an agent may have
// changed them.
func (l *Launcher) bring(ctx context.Context, paths, again []string) error {
	if len(paths) == 0 {
		return nil
	}
	l.touch()
	bundles, err := l.opts.pack(paths)
	defer func() {
		for _, b := range bundles {
			_ = b.root.Close() // the root was only read
		}
	}()
	if err != nil {
		return err
	}
	c, there, err := l.remote.engine.inspect(ctx, l.remote.name)
	// If the engine is unreachable, rely on the last copies. The connection to the container shows whether the
	// container still exists.
	if isUnreachable(err) && l.has(l.copied.last(), bundles) {
		return nil
	}
	if err != nil {
		return err
	}
	l.copied.forget(again)
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

// pack returns a bundle for each shared directory that contains some of paths. The caller must close the bundles, even
// after an error.
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

// has reports whether a container contains all files of the bundles.
func (l *Launcher) has(id string, bundles []*bundle) bool {
	return l.selectMissing(id, bundles) == nil && !slices.ContainsFunc(bundles, (*bundle).hasSelected)
}

// selectMissing selects the files of the bundles that a container does not contain.
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

// groupByDir groups paths by their shared directory, and makes them relative to the directory.
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

// load copies the selected files into the same directory in the container.
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
	_ = out.CloseWithError(io.ErrClosedPipe) // stops pack if it is still running
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

// bundle is a set of files and directories from one shared directory that are to be copied.
type bundle struct {
	root     *os.Root // follows no link out of the directory
	dir      string
	named    []item // from the caller; an error if they cannot be copied
	found    []item // from named directories, the newest first
	selected []item // selected for copying
}

type item struct {
	below   string
	version version // zero for a directory
}

func (i item) isDir() bool { return i.version == version{} }

// addPath adds a file to the bundle, or a directory with its files.
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

// lstat returns the file info of a path below the directory. It follows no link.
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

// selectMissing selects the files for which known returns false. left is the number of bytes that may still be copied;
// selectMissing subtracts the selected files. If a named file does not fit, selectMissing returns an error. It skips
// found files that do not fit.
func (b *bundle) selectMissing(known func(below string, v version) bool, left *int64) error {
	b.selected = nil
	for _, i := range b.named {
		if known(i.below, i.version) {
			continue
		}
		if *left -= i.version.size; *left < 0 {
			return bringError(filepath.Join(b.dir, i.below),
				fmt.Sprintf("more than %d MB at a time", maxBringBytes>>20), nil)
		}
		b.selected = append(b.selected, i)
	}
	for _, i := range b.found {
		if !slices.Contains(b.named, i) && !known(i.below, i.version) && i.version.size <= *left {
			*left -= i.version.size
			b.selected = append(b.selected, i)
		}
	}
	return nil
}

// hasSelected reports whether files are selected for copying.
func (b *bundle) hasSelected() bool { return len(b.selected) > 0 }

func (b *bundle) versions() map[string]version {
	all := map[string]version{}
	for _, i := range b.selected {
		all[filepath.Join(b.dir, i.below)] = i.version
	}
	return all
}

// pack writes the archive and closes the writer.
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
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // the file was replaced in the meantime
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
