package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/docker/docker/api/types/container"

	"ductor/cli"
	"ductor/docker/homes"
)

const maxSeed = homes.MaxBytes

// seed copies what the agents find in their home, and makes the directories that mounts in it are put in: an engine
// would give them to root.
func (p *place) seed(ctx context.Context, id string) error {
	s, err := newSeedArchive(p.opts.User)
	if err != nil {
		return err
	}
	for _, m := range p.opts.mounts() {
		if below, ok := strings.CutPrefix(path.Clean(m.Target), homeDir+"/"); ok {
			if err := s.parents(path.Clean(below)); err != nil {
				return err
			}
		}
	}
	if err := s.addAll(seedsOf("", p.opts.Seeds)); err != nil {
		return err
	}
	if len(s.made) == 0 {
		return nil
	}
	if err := s.Close(); err != nil {
		return err
	}
	ctx, cancel := p.engine.work(ctx)
	defer cancel()
	return p.engine.failed("copy files into the sandbox", p.engine.api.CopyToContainer(ctx, id, homeDir, &s.raw, container.CopyToContainerOptions{}))
}

// seedArchive collects files below a home.
type seedArchive struct {
	*tree
	raw bytes.Buffer
}

func newSeedArchive(user string) (*seedArchive, error) {
	uid, gid, err := parseUser(user)
	s := &seedArchive{}
	s.tree = newTree(&s.raw, tar.Header{Mode: 0o700, Uid: uid, Gid: gid})
	return s, err
}

// tree is an archive that has the directories of what is in it.
type tree struct {
	*tar.Writer
	dir  tar.Header      // what each of them has beside its name
	made map[string]bool // what is in the archive
}

func newTree(to io.Writer, dir tar.Header) *tree {
	dir.Typeflag = tar.TypeDir
	return &tree{tar.NewWriter(to), dir, map[string]bool{}}
}

// parents makes the directories above name.
func (t *tree) parents(name string) error {
	dir := t.dir
	dir.Name = path.Dir(name)
	if dir.Name == "." || t.made[dir.Name] {
		return nil
	}
	if err := t.parents(dir.Name); err != nil {
		return err
	}
	t.made[dir.Name] = true
	return t.WriteHeader(&dir)
}

// seedsOf are those that are copied when an agent is started; with the home, for none.
func seedsOf(agent cli.Agent, all []Seed) (own []Seed) {
	for _, s := range all {
		if s.Agent == agent {
			own = append(own, s)
		}
	}
	return own
}

func (s *seedArchive) addAll(seeds []Seed) error {
	for _, seed := range seeds {
		if err := s.add(seed); err != nil {
			return seedError(seed, err)
		}
	}
	return nil
}

// add copies a file, or a directory with all in it.
func (s *seedArchive) add(seed Seed) error {
	return eachFile(seed, func(file, to string, info fs.FileInfo) error {
		if err := s.parents(to); err != nil {
			return err
		}
		return s.file(file, to, info)
	})
}

func (s *seedArchive) file(from, name string, info fs.FileInfo) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if s.raw.Len()+len(content) > maxSeed {
		return fmt.Errorf("more than %d MB", maxSeed>>20)
	}
	s.made[name] = true
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: int64(info.Mode().Perm()), Size: int64(len(content)), Uid: s.dir.Uid, Gid: s.dir.Gid, ModTime: info.ModTime()}
	if err := s.WriteHeader(h); err != nil {
		return err
	}
	_, err = s.Write(content)
	return err
}
