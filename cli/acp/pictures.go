package acp

import (
	"cmp"
	"context"

	"ductor/cli"
)

// methodModels is a method of Qwen Code that lists its models, with the kinds of input that each model reads. Qwen Code
// accepts pictures for every model, but replaces them by a text if the model cannot read pictures.
const methodModels = "qwen/status/workspace/providers"

// modelsRead is the response to methodModels.
type modelsRead struct {
	Providers []struct {
		Name    string `json:"authType"`
		Current bool   `json:"current"`
		Models  []struct {
			ID     string `json:"modelId"`
			Active bool   `json:"isCurrent"`
			Reads  *struct {
				Image bool `json:"image"`
			} `json:"modalities"` // Qwen Code omits this field until it has used the model
		} `json:"models"`
	} `json:"providers"`
}

type imageSupport string

const (
	imagesRead  imageSupport = "open"
	noImages    imageSupport = "shut"
	maybeImages imageSupport = "unknown" // the agent does not report the ability
)

// imageSupportOf describes whether a model can read pictures, either itself or with the help of another model. If model
// is empty, it describes the current model.
func (m modelsRead) imageSupportOf(model string) imageSupport {
	found := maybeImages
	for _, p := range m.Providers {
		if p.Name == "qwen-oauth" && !p.Current { // Qwen Code lists this model even without a log-in
			continue
		}
		for _, one := range p.Models {
			switch {
			case one.Reads != nil && one.Reads.Image:
				return imagesRead
			case one.Reads != nil && (one.ID == model || model == "" && one.Active):
				found = noImages
			}
		}
	}
	return found
}

// imageSupport returns whether the agent can read pictures in a turn with the given model.
func (s *session) imageSupport(ctx context.Context, model cli.ModelID) imageSupport {
	switch {
	case !s.process.hello.Capabilities.Prompt.Image:
		return noImages
	case !s.options().quirks.DropsPictures:
		return imagesRead
	}
	want := cmp.Or(string(model), s.offersNow().model.original)
	var models modelsRead
	if err := s.process.call(ctx, methodModels, sessionParams{SessionID: string(s.id)}, &models); err != nil {
		return maybeImages
	}
	return models.imageSupportOf(want)
}

// withoutUnread removes the pictures from a request if the model cannot read them. warning is an event that informs the
// user. warning is nil if the model can read the pictures.
func (s *session) withoutUnread(ctx context.Context, req cli.Request) (fit cli.Request, warning cli.Event) {
	if len(req.Images) == 0 {
		return req, nil
	}
	switch agent := s.options().Agent; s.imageSupport(ctx, req.Model) {
	case noImages:
		req.Images = nil
		return req, req.WithoutPictures(agent)
	case maybeImages:
		return req, req.PerhapsWithoutPictures(agent)
	}
	return req, nil
}
