package host

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"ductor/cli"
	"ductor/internal/rooted"
)

// maxSeed limits the size of a seed's content, in bytes.
const maxSeed = 32 << 20

// seed is a cli.HomeSeed with the methods that Homes needs.
type seed cli.HomeSeed

func (s seed) check() error {
	switch {
	case !filepath.IsLocal(s.To) || path.Clean(s.To) == ".":
		return fmt.Errorf("a seed of homes: %q is no place in a home", s.To)
	case s.From == "" && (s.Link || s.Pick == nil), s.From != "" && !filepath.IsAbs(s.From):
		return fmt.Errorf("a seed of homes: %q comes from nowhere", s.To)
	}
	return nil
}

// content returns the content of a copy of the seed. If the content is empty, no file is created.
func (s seed) content() ([]byte, error) {
	var owner []byte
	if s.From != "" {
		var err error
		if owner, err = readSeed(s.From); ignoreGone(err) != nil {
			return nil, err
		}
	}
	if s.Pick == nil {
		return owner, nil
	}
	picked, err := s.Pick(owner)
	if err != nil {
		return nil, fmt.Errorf("pick the content of the seed %s: %w", s.From, err)
	}
	return picked, nil
}

func readSeed(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no file", file), err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxSeed+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSeed {
		return nil, fmt.Errorf("%s has more than %d MB", file, maxSeed>>20)
	}
	return raw, nil
}

// syncSeeds updates all seeds in a home. oldStates maps the path of each seed to its state: the hash of the copied
// content, or "link". syncSeeds returns the new states. If an agent changed a copy, the agent's content remains until
// the owner changes the original.
func syncSeeds(home *os.Root, seeds []cli.HomeSeed, oldStates map[string]string) (map[string]string, error) {
	now := map[string]string{}
	for _, s := range seeds {
		put := seed(s).copyTo
		if s.Link {
			put = seed(s).ensureLink
		}
		state, err := put(home, oldStates[s.To])
		if err != nil {
			return nil, fmt.Errorf("update the seed %s: %w", s.To, err)
		}
		if state != "" {
			now[s.To] = state
		}
	}
	return now, nil
}

// copyTo copies the seed, unless the last copy had the same content. oldState is the state of the last copy.
func (s seed) copyTo(home *os.Root, oldState string) (state string, err error) {
	content, err := s.content()
	if err != nil {
		return "", err
	}
	if len(content) == 0 {
		if oldState != "" { // the seed has no content any more, so remove the copy
			return "", ignoreGone(home.Remove(s.To))
		}
		return "", nil
	}
	sum := sha256.Sum256(content)
	state = hex.EncodeToString(sum[:16])
	if state == oldState {
		return state, nil
	}
	return state, replaceFile(home, s.To, content)
}

const tied = "link"

func (s seed) ensureLink(home *os.Root, oldState string) (state string, err error) {
	owner, err := os.Stat(s.From)
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone {
		return "", err
	}
	there, err := home.Lstat(s.To)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		there = nil
	case err != nil:
		return "", err
	}
	if gone {
		if there != nil && oldState == tied && there.Mode().Type() == fs.ModeSymlink {
			return "", home.Remove(s.To)
		}
		return "", nil
	}
	if there != nil && there.Mode().Type() == fs.ModeSymlink {
		if to, err := home.Readlink(s.To); err == nil && to == s.From {
			return tied, nil
		}
	}
	if there != nil && oldState == tied && there.Mode().IsRegular() && owner.Mode().IsRegular() &&
		there.ModTime().After(owner.ModTime()) {
		if err := copyBack(home, s.To, s.From); err != nil {
			return "", err
		}
	}
	return tied, replaceLink(home, s.To, s.From)
}

// copyBack copies a file to the owner's home if an agent replaced a link by this file.
func copyBack(home *os.Root, from, to string) error {
	content, err := home.ReadFile(from)
	if err != nil || len(content) == 0 || len(content) > maxSeed {
		return err
	}
	if to, err = filepath.EvalSymlinks(to); err != nil {
		return err
	}
	dir, err := os.OpenRoot(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer dir.Close()
	return rooted.Replace(dir, filepath.Base(to), content, nil)
}

// replaceFile writes a file atomically. If a file or a link exists, replaceFile replaces it. replaceFile fails if a
// directory exists.
func replaceFile(root *os.Root, name string, content []byte) error {
	return replace(root, name, func(temporary string) error {
		f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, bytes.NewReader(content))
		return errors.Join(err, f.Close())
	})
}

func replaceLink(root *os.Root, name, to string) error {
	return replace(root, name, func(temporary string) error { return root.Symlink(to, temporary) })
}

func replace(root *os.Root, name string, make func(temporary string) error) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	temporary := path.Join(path.Dir(name), ".ductor-"+rand.Text())
	err := make(temporary)
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, ignoreGone(root.Remove(temporary)))
	}
	return nil
}

// CopiedSeeds prepares seeds for an environment that does not see this host's files. It copies the results of Pick to
// files in dir, which other users cannot read. The returned seeds refer to these files, and have neither Pick nor Link
// set. CopiedSeeds omits links to directories, and seeds whose Pick returns no content.
func CopiedSeeds(dir string, seeds []cli.HomeSeed) ([]cli.HomeSeed, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("copy seeds: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("copy seeds: %w", err)
	}
	defer root.Close()
	var copied []cli.HomeSeed
	for _, s := range seeds {
		if s.Pick == nil {
			if info, err := os.Stat(s.From); err == nil && info.IsDir() {
				continue
			}
			copied = append(copied, cli.HomeSeed{From: s.From, To: s.To})
			continue
		}
		content, err := seed(s).content()
		if err == nil && len(content) > 0 {
			// Do not write the same content again: a new modification time would look like a change.
			if had, readErr := root.ReadFile(s.To); readErr != nil || !bytes.Equal(had, content) {
				err = replaceFile(root, s.To, content)
			}
			copied = append(copied, cli.HomeSeed{From: filepath.Join(dir, filepath.FromSlash(s.To)), To: s.To})
		}
		if err != nil {
			return nil, fmt.Errorf("copy seeds: %w", err)
		}
	}
	return copied, nil
}

// ignoreGone returns nil for fs.ErrNotExist, because agents may remove files at any time.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
