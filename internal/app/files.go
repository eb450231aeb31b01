package app

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"ductor/cli"
	"ductor/git"
	"ductor/internal/app/environment"
	"ductor/internal/secrets"
	"ductor/orchestrator"
	"ductor/orchestrator/changes"
	"ductor/orchestrator/files"
	"ductor/orchestrator/projects"
)

// files returns the service with which users and agents reach project files, on this machine and in sandboxes.
func (a *App) files() *files.Service {
	return files.New(files.Options{
		Roots: a.cfg.Projects.Roots, Protected: ownFiles(a.cfg), Secrets: a.secretsOf, Session: a.db.Session,
		Dir: func(ctx context.Context, id orchestrator.ConversationID) (string, error) {
			c, err := a.db.Conversation(ctx, id)
			return cmp.Or(c.Dir, a.cfg.Projects.DefaultDir), err
		},
		Sandbox: a.envs.Sandboxes.Policy().Of, Environment: a.filesOf,
	})
}

// filesOf returns access to the files of a sandbox. An empty name means this machine.
func (a *App) filesOf(in cli.Sandbox) (files.Environment, error) {
	if in == "" {
		return files.Host{}, nil
	}
	b := a.envs.Sandboxes.Find(in)
	switch {
	case b == nil:
		return nil, fmt.Errorf("there is no sandbox %s", in.Name())
	case b.Launcher == nil:
		return nil, b.Err
	}
	return b.Launcher, nil
}

// secretsOf returns secrets that must not appear in messages about the files below dir: ductor's own, and those in
// files of the project.
func (a *App) secretsOf(dir string) *secrets.Set {
	return a.Scrub.Secrets().With(secrets.OfProject(dir)...)
}

// newChanges creates the service that takes snapshots of projects. The service works only after attachRepositories.
func (a *App) newChanges() *changes.Service {
	a.changes = changes.New(changes.Options{
		Store: a.db, Sandboxes: a.envs.Sandboxes.Policy(), Secrets: a.secretsOf, Now: time.Now, NewID: newID,
		Log: a.Log,
	})
	return a.changes
}

// attachRepositories connects projects and snapshots to git. It requires a.service.
func (a *App) attachRepositories(book *projects.Book) {
	repositories := git.New(a.service, filepath.Join(a.cfg.Storage.Dir, environment.GitDir))
	book.Attach(a.orchestrator, repositories)
	a.changes.Attach(a.orchestrator, repositories)
}
