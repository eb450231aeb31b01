package demo

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ProjectName is the name of the project that Seed creates.
const ProjectName = "tea-shop"

//go:embed project
var project embed.FS

// Seed creates a small project in dir, which must not exist. If Git is installed, the project is a Git repository.
func Seed(dir string) error {
	files, err := fs.Sub(project, "project")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return err
	}
	program, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--template="}, {"config", "user.name", "Demo"},
		{"config", "user.email", "demo@example.com"},
		{"add", "."}, {"-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify", "-m", "Open the shop"},
	} {
		git := exec.Command(program, args...)
		git.Dir = dir
		git.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(dir), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := git.CombinedOutput(); err != nil {
			return errors.Join(fmt.Errorf("git %s: %w", args[0], err), errors.New(string(out)))
		}
	}
	return nil
}

// discounted returns the file shop.py with the discount that the project's README promises.
func discounted() string {
	shop, err := project.ReadFile("project/shop.py")
	if err != nil {
		panic("demo: the project is not embedded: " + err.Error())
	}
	return strings.Replace(string(shop), "    return round(sum(PRICES[item] for item in order), 2)\n",
		"    price = sum(PRICES[item] for item in order)\n    if len(order) >= 5:\n        price *= 0.9\n    return round(price, 2)\n", 1)
}
