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

// seed copies the seeds into the agents' home. It also creates the parent directories of mounts in the home; otherwise
// the engine would create them, and they would belong to root.
func (p *remote) seed(ctx context.Context, id string) error {
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
	ctx, cancel := p.engine.workContext(ctx)
	defer cancel()
	return p.engine.describe("copy files into the sandbox",
		p.engine.api.CopyToContainer(ctx, id, homeDir, &s.raw, container.CopyToContainerOptions{}))
}

// seedArchive is an archive of the files to copy into a home.
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

// tree is a tar archive that also contains the parent directories of its files.
type tree struct {
	*tar.Writer
	dir  tar.Header      // template for the headers of directories
	made map[string]bool // names that are in the archive
}

func newTree(to io.Writer, dir tar.Header) *tree {
	dir.Typeflag = tar.TypeDir
	return &tree{tar.NewWriter(to), dir, map[string]bool{}}
}

// parents adds the parent directories of name that are not in the archive yet.
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

// seedsOf returns the seeds of an agent. If agent is empty, it returns the seeds that belong to no agent.
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
		if err := s.addSeed(seed); err != nil {
			return seedError(seed, err)
		}
	}
	return nil
}

func (s *seedArchive) addSeed(seed Seed) error {
	err := eachFile(seed, func(file, to string, info fs.FileInfo) error {
		if err := s.parents(to); err != nil {
			return err
		}
		return s.file(file, to, info)
	})
	if err == nil && seed.Fixed {
		_, err = seed.source() // an agent may have planted a link in the meantime
	}
	return err
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
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: int64(info.Mode().Perm()), Size: int64(len(content)),
		Uid: s.dir.Uid, Gid: s.dir.Gid, ModTime: info.ModTime()}
	if err := s.WriteHeader(h); err != nil {
		return err
	}
	_, err = s.Write(content)
	return err
}
