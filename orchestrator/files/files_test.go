package files

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// service returns a Service for a directory with the given files.
func service(t *testing.T, files map[string]string) (*Service, orchestrator.FilePlace) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := New(Options{
		Roots: []string{dir}, Protected: []string{filepath.Join(dir, "state")},
		Secrets: func(string) *secrets.Set { return secrets.NewSet("hunter2-hunter2") },
		Session: func(_ context.Context, id orchestrator.SessionID) (orchestrator.Session, error) {
			return orchestrator.Session{ID: id, Dir: filepath.Join(dir, "work")}, nil
		},
		Dir: func(context.Context, orchestrator.ConversationID) (string, error) {
			return filepath.Join(dir, "work"), nil
		},
		Sandbox: func(string, orchestrator.ConversationID) cli.Sandbox { return "" },
		Environment: func(in cli.Sandbox) (Environment, error) {
			if in != "" {
				return nil, errors.New("the engine is away")
			}
			return Host{}, nil
		},
	})
	return s, orchestrator.FilePlace{Dir: filepath.Join(dir, "work"), Roots: []string{dir}}
}

func why(err error) orchestrator.FileRefusal {
	var e *orchestrator.FileError
	if errors.As(err, &e) {
		return e.Why
	}
	return ""
}

func TestWhatIsRead(t *testing.T) {
	s, at := service(t, map[string]string{
		"work/a.txt": "key hunter2-hunter2!", "b.txt": "b", "work/sub/c.txt": "c", "state/ductor.db": "x", "work/.env": "x", "work/id_rsa": "x",
		"work/credentials.json": "x", "work/prod.env": "x", "work/bin": "\x00hunter2-hunter2", "work/clean": "\x00bin",
		"work/mine.pem": "text\n-----BEGIN RSA PRIVATE KEY-----\n", "work/notes.key": "a talk", "work/empty": "",
		"work/latin": "hunter2-hunter2 \xe9", "work/kubeconfig": "x", "work/prod.kubeconfig": "x", "work/terraform.tfstate": "x", "work/a.tfstate.backup": "x",
		"work/prod.tfvars": "x", "work/cluster.yaml": "apiVersion: v1\nkind: Config\nusers:\n- user:\n    client-key-data: abc\n",
		"work/token.yaml": "kind: Config\ncurrent-context: prod\nusers:\n- user:\n    token: abc\n", "work/state.json": `{"version": 4, "terraform_version": "1.9"}`,
		"work/deploy.yaml": "kind: Deployment\n",
	})
	for path, want := range map[string]struct {
		why  orchestrator.FileRefusal
		text string
	}{
		"a.txt": {"", "key " + secrets.Removed + "!"}, "../b.txt": {"", "b"}, "sub/c.txt": {"", "c"}, filepath.Join(at.Roots[0], "b.txt"): {"", "b"},
		"../../x": {orchestrator.FileOutside, ""}, "/etc/hostname": {orchestrator.FileOutside, ""}, "../state/ductor.db": {orchestrator.FileSecret, ""},
		".env": {orchestrator.FileHidden, ""}, "id_rsa": {orchestrator.FileSecret, ""}, "credentials.json": {orchestrator.FileSecret, ""},
		"prod.env": {orchestrator.FileSecret, ""}, "bin": {orchestrator.FileHasSecret, ""}, "latin": {orchestrator.FileHasSecret, ""},
		"clean": {"", "\x00bin"}, "mine.pem": {orchestrator.FileHasSecret, ""}, "notes.key": {"", "a talk"}, "empty": {orchestrator.FileEmpty, ""},
		"none": {orchestrator.FileNotThere, ""}, "sub": {orchestrator.FileDirectory, ""}, "": {orchestrator.FileDirectory, ""},
		"~/.ssh/id_rsa": {orchestrator.FileOutside, ""},
		"kubeconfig":    {orchestrator.FileSecret, ""}, "prod.kubeconfig": {orchestrator.FileSecret, ""}, "terraform.tfstate": {orchestrator.FileSecret, ""},
		"a.tfstate.backup": {orchestrator.FileSecret, ""}, "prod.tfvars": {orchestrator.FileSecret, ""}, "cluster.yaml": {orchestrator.FileHasSecret, ""},
		"token.yaml": {orchestrator.FileHasSecret, ""}, "state.json": {orchestrator.FileHasSecret, ""}, "deploy.yaml": {"", "kind: Deployment\n"},
	} {
		f, err := s.Read(t.Context(), at, path)
		if why(err) != want.why || string(f.Content) != want.text {
			t.Errorf("%q: %q, %v; want %q, %q", path, f.Content, err, want.text, want.why)
		}
	}
	away := at
	away.Sandbox = "web"
	if _, err := s.Read(t.Context(), away, "a.txt"); why(err) != orchestrator.FileUnreachable {
		t.Errorf("in a sandbox that cannot be had: %v", err)
	}
}

// A root that is named by a link serves paths by both names.
func TestARootThatIsALink(t *testing.T) {
	s, at := service(t, map[string]string{"work/a.txt": "a"})
	link := filepath.Join(t.TempDir(), "root")
	if err := os.Symlink(at.Roots[0], link); err != nil {
		t.Fatal(err)
	}
	at.Roots = []string{link}
	for _, path := range []string{"a.txt", filepath.Join(link, "work/a.txt")} {
		if f, err := s.Read(t.Context(), at, path); err != nil || string(f.Content) != "a" {
			t.Errorf("%s: %q, %v", path, f.Content, err)
		}
	}
}

// The working directory can be a worktree in a hidden directory. Hidden files below it, and those elsewhere in the
// roots, stay hidden.
func TestAWorktreeInAHiddenDirectory(t *testing.T) {
	s, at := service(t, map[string]string{
		"work/.worktrees/fix/a.txt": "a", "work/.worktrees/fix/out/b.txt": "b", "work/.worktrees/fix/.git": "x",
		"work/.worktrees/fix/.env": "x", "work/.worktrees/fix/.ssh/config": "x", "work/.worktrees/other/a.txt": "x",
		"work/.git/config": "x", "work/c.txt": "c", ".ssh/config": "x",
	})
	root, fix := at.Roots[0], filepath.Join(at.Dir, ".worktrees", "fix")
	link := filepath.Join(t.TempDir(), "root")
	err := errors.Join(os.Symlink(root, link), os.Symlink("../../..", filepath.Join(fix, "up")),
		os.Symlink(".git", filepath.Join(root, "work", "git")))
	if err != nil {
		t.Fatal(err)
	}
	for _, roots := range [][]string{{root}, {link}, {root, filepath.Join(root, "work")}} {
		at := orchestrator.FilePlace{Dir: fix, Roots: roots}
		for path, want := range map[string]string{
			"a.txt": "a", "out/b.txt": "b", filepath.Join(fix, "a.txt"): "a", "../../c.txt": "c", "../fix/a.txt": "a",
			".git": "hidden", ".env": "hidden", ".ssh/config": "hidden", "../other/a.txt": "hidden",
			"../../.git/config": "hidden", "../../../.ssh/config": "hidden", "up/c.txt": "link",
			"../../git/config": "link", "../../../../x": "outside",
		} {
			f, err := s.Read(t.Context(), at, path)
			if got := string(f.Content) + string(why(err)); got != want {
				t.Errorf("%s below %q: %q, want %q", path, roots, got, want)
			}
		}
		all, err := s.List(t.Context(), at, ".")
		if err != nil || len(all) != 2 || all[0].Name != "out" || all[1].Name != "a.txt" {
			t.Errorf("the list below %q: %+v, %v", roots, all, err)
		}
		for _, dir := range []string{"..", "../other", ".ssh", "../../.git"} {
			if _, err := s.List(t.Context(), at, dir); why(err) != orchestrator.FileHidden {
				t.Errorf("list %s below %q: %v", dir, roots, err)
			}
		}
		for path, want := range map[string]orchestrator.FileRefusal{
			"out/": "", ".git/hooks": "hidden", "../other/": "hidden", "up/": "link",
		} {
			made, err := s.Write(t.Context(), at, path, "new.txt", []byte("new"))
			if why(err) != want {
				t.Errorf("write %s below %q: %v", path, roots, err)
			}
			if err == nil && os.Remove(made) != nil {
				t.Errorf("%s is not there", made)
			}
		}
	}
	// A directory outside of the roots makes nothing visible.
	at = orchestrator.FilePlace{Dir: filepath.Join(t.TempDir(), "x"), Roots: []string{root}}
	if _, err := s.Read(t.Context(), at, filepath.Join(root, ".ssh", "config")); why(err) != orchestrator.FileHidden {
		t.Errorf("from outside: %v", err)
	}
}

// Only worktrees are visible as working directories below hidden ones.
func TestAWorkingDirectoryThatIsHidden(t *testing.T) {
	content := map[string]string{}
	dirs := map[string]orchestrator.FileRefusal{
		".worktrees/fix": "", ".claude/worktrees/fix": "", "work/.worktrees/fix/src": "",
		".worktrees/fix/.claude/worktrees/nested": "", "work/.git": "hidden", ".ssh": "hidden", ".config/gh": "hidden",
		".git/.worktrees/fix": "hidden", ".worktrees/fix/.git": "hidden", ".worktrees": "hidden", ".claude": "hidden",
		".worktrees/.git": "hidden", ".claude/worktrees": "hidden", ".claude/worktrees/.git": "hidden",
		".claude/agents/fix": "hidden",
	}
	for dir := range dirs {
		content[dir+"/a.txt"] = "a"
	}
	s, at := service(t, content)
	for dir, want := range dirs {
		at.Dir = filepath.Join(at.Roots[0], dir)
		_, err := s.Read(t.Context(), at, "a.txt")
		_, listed := s.List(t.Context(), at, ".")
		_, written := s.Write(t.Context(), at, "", "new.txt", []byte("new"))
		if why(err) != want || why(listed) != want || why(written) != want {
			t.Errorf("in %s: read %v, listed %v, wrote %v; want %q", dir, err, listed, written, want)
		}
	}
}

// A link in place of a hidden working directory, or of a directory above it, leads nowhere.
func TestAHiddenWorkingDirectoryThatBecameALink(t *testing.T) {
	s, at := service(t, map[string]string{"work/.worktrees/fix/a.txt": "a"})
	at.Dir = filepath.Join(at.Dir, ".worktrees", "fix")
	for _, swap := range []string{at.Dir, filepath.Dir(at.Dir)} {
		if err := errors.Join(os.Rename(swap, swap+"-moved"), os.Symlink(swap+"-moved", swap)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(t.Context(), at, "a.txt"); why(err) != orchestrator.FileLink {
			t.Errorf("through a link at %s: %v", swap, err)
		}
	}
}

// pngOf returns the header of a PNG file with the given sides.
func pngOf(width, height uint32) string {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("IHDR"), width), height)
	head = append(head, 8, 6, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(head)))
}

func TestWhatIsAPicture(t *testing.T) {
	var small, photo bytes.Buffer
	img := image.NewGray(image.Rect(0, 0, 30, 20))
	img.Set(1, 1, color.White)
	if err := errors.Join(png.Encode(&small, img), jpeg.Encode(&photo, img, nil)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content string
		want    bool
	}{
		"a PNG": {small.String(), true}, "a JPEG": {photo.String(), true}, "of any name": {small.String(), true},
		"that unpacks to gigabytes": {pngOf(50_000, 50_000), false}, "very wide": {pngOf(2100, 100), false}, "very high": {pngOf(10, 300), false},
		"just not too wide": {pngOf(2000, 100), true}, "more than 10 MB": {small.String() + strings.Repeat("x", 10<<20), false},
		"a GIF": {"GIF89a\x01\x00\x01\x00\x00\x00\x00", false}, "text": {"picture", false}, "torn": {"\x89PNG\r\n\x1a\n\x00", false}, "nothing high": {pngOf(10, 0), false},
	} {
		s, at := service(t, map[string]string{"work/x": c.content})
		if f, err := s.Read(t.Context(), at, "x"); err != nil || f.Picture != c.want {
			t.Errorf("%s: %v, %v", name, f.Picture, err)
		}
	}
}

func TestListAndWrite(t *testing.T) {
	s, at := service(t, map[string]string{"work/a.txt": "a", "work/sub/x": "", "work/id_rsa": "", "work/.env": "", "state/db": ""})
	all, err := s.List(t.Context(), at, ".")
	if err != nil || len(all) != 2 || all[0].Name != "sub" || all[1] != (orchestrator.FileEntry{Name: "a.txt", Size: 1}) {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err := s.List(t.Context(), at, ".."); err != nil || len(all) != 1 {
		t.Errorf("ductor's own directory is listed: %+v, %v", all, err)
	}
	if _, err := s.List(t.Context(), at, "none"); why(err) != orchestrator.FileNoFolder {
		t.Errorf("a missing folder: %v", err)
	}
	for _, c := range []struct{ path, want string }{
		{"", "new.txt"}, {"", "exists"}, {"sub", "sub/new.txt"}, {"sub/", "exists"}, {"sub/other.md", "sub/other.md"}, {"a.txt", "exists"},
		{"none/", "no-folder"}, {"../../x", "outside"}, {".env", "hidden"}, {"id_rsa", "secret"}, {"../state", "secret"},
	} {
		got, err := s.Write(t.Context(), at, c.path, "new.txt", []byte("new"))
		if err == nil {
			got, _ = filepath.Rel(at.Dir, got)
		} else {
			got = string(why(err))
		}
		if got != c.want {
			t.Errorf("%q: %s (%v), want %s", c.path, got, err, c.want)
		}
	}
}

// An agent whose turn does not have the rights of its chat can only send files from its working directory.
func TestWhereAgentsSendFilesFrom(t *testing.T) {
	s, _ := service(t, map[string]string{"work/a.txt": "a", "b.txt": "b"})
	for of, want := range map[orchestrator.RightsOf]orchestrator.FileRefusal{
		orchestrator.RightsOfChat: "", orchestrator.RightsOfMember: orchestrator.FileOutside, orchestrator.RightsOfJob: orchestrator.FileOutside,
		orchestrator.RightsOfOutside: orchestrator.FileOutside,
	} {
		turn := orchestrator.Turn{Session: "S1", Prompt: orchestrator.Prompt{Rights: orchestrator.Rights{Of: of}}}
		if of == orchestrator.RightsOfOutside { // it may have no session yet
			turn.Session = ""
		}
		at, err := s.OfTurn(t.Context(), turn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(t.Context(), at, "../b.txt"); why(err) != want {
			t.Errorf("rights of %q: %v", of, err)
		}
		if _, err := s.Read(t.Context(), at, "a.txt"); err != nil {
			t.Errorf("rights of %q: %v", of, err)
		}
	}
}
