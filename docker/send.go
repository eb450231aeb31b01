package docker

import (
	"context"
	"errors"
)

// supply builds or fetches an image in this engine, and sends the image to the other engine.
func (e *Engine) supply(ctx context.Context, o Options, name string, to *Engine) error {
	o.Source = nil
	if _, err := e.base(ctx, o, name); err != nil {
		return err
	}
	return e.Send(ctx, to, name)
}

// Send copies an image to another engine, which then needs no access to a registry. If that engine has an image with
// the same ID, Send does nothing.
func (e *Engine) Send(ctx context.Context, to *Engine, name string) error {
	here, has, err := e.image(ctx, name)
	if err == nil && !has {
		err = e.noImage(name)
	}
	if err != nil {
		return err
	}
	if there, has, err := to.image(ctx, name); err != nil || has && there.ID == here.ID {
		return err
	}
	ctx, moves, done := to.progressContext(ctx)
	defer done()
	saved, err := e.api.ImageSave(ctx, []string{name})
	if err != nil {
		return e.describe("save the image "+name, err)
	}
	defer saved.Close()
	loaded, err := to.api.ImageLoad(ctx, moves.track(saved))
	if err == nil {
		err = errors.Join(readProgress(moves.track(loaded.Body)), loaded.Body.Close())
	}
	return to.describe("load the image "+name, err)
}
