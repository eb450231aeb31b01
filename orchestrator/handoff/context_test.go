package handoff

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASessionBeginsWithFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"docs/rules.md": "Be brief.\n", "b.md": "Two.", "long.md": strings.Repeat("x", mostOfFile+1),
		"binary.md": "a\xff", ".hidden.md": "hidden",
		"1.md": strings.Repeat("1", mostOfFile), "2.md": strings.Repeat("2", mostOfFile),
		"3.md": strings.Repeat("3", mostOfFile),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}

	text, left := Context(dir, "", []string{"docs/rules.md", "missing.md", "long.md", "binary.md", "link.md",
		"../secret.md", outside, "b.md", ".hidden.md"})
	want := "<project-files>\nEvery session in this project begins with these files of it.\n" +
		"<file path=\"docs/rules.md\">\nBe brief.\n</file>\n<file path=\"b.md\">\nTwo.\n</file>\n</project-files>\n\n"
	if text != want || len(left) != 7 {
		t.Errorf("%s\nleft out: %v", text, left)
	}
	text, left = Context(dir, "", []string{"1.md", "2.md", "3.md"})
	if len(left) != 1 || len(text) > mostOfFiles+1000 {
		t.Errorf("%d bytes, left out: %v", len(text), left)
	}
	if text, left := Context(dir, "", nil); text != "" || left != nil {
		t.Errorf("%q, %v", text, left)
	}
}

// An agent in a sandbox can replace the project's directory by a link, which leads to another directory of this host.
func TestAttackFilesOfALinkedProject(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	private, project := filepath.Join(base, "private"), filepath.Join(base, "project")
	if err := errors.Join(err, os.MkdirAll(filepath.Join(private, "sub"), 0o700),
		os.WriteFile(filepath.Join(private, "sub", "a.md"), []byte("secret"), 0o600),
		os.Symlink(private, project)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{project, filepath.Join(project, "sub")} {
		if text, omitted := Context(dir, "box", []string{"a.md", "sub/a.md"}); text != "" || len(omitted) != 2 ||
			omitted[0].Err.Error() != "it is a link" {
			t.Errorf("%s: %q, left out: %v", dir, text, omitted)
		}
	}
	if text, _ := Context(private, "box", []string{"sub/a.md"}); !strings.Contains(text, "secret") {
		t.Errorf("without a link: %q", text)
	}
}
