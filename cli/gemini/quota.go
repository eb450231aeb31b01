package gemini

import (
	"encoding/json"
	"strings"

	"ductor/cli"
)

// quota is the token usage of a turn in the metadata of Gemini's reply to a prompt.
type quota struct {
	quotaTokens
	Models []struct {
		Model cli.ModelID `json:"model"`
		quotaTokens
	} `json:"model_usage"`
}

type quotaTokens struct {
	Tokens struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"token_count"`
}

func (q quotaTokens) usage() cli.Usage {
	return cli.Usage{Input: q.Tokens.Input, Output: q.Tokens.Output}
}

// usageInMeta returns the model and the token usage in the metadata of a reply to a prompt.
func usageInMeta(meta json.RawMessage) (model cli.ModelID, total cli.Consumption) {
	var sent struct {
		Quota *quota `json:"quota"`
	}
	if json.Unmarshal(meta, &sent) != nil || sent.Quota == nil {
		return "", cli.Consumption{}
	}
	byModel := map[cli.ModelID]cli.Usage{}
	for _, m := range sent.Quota.Models {
		byModel[m.Model] = m.usage()
		if model == "" || picksModel(model) || !picksModel(m.Model) && m.usage().Output > byModel[model].Output {
			model = m.Model
		}
	}
	for id, used := range byModel {
		if id != model && picksModel(id) {
			byModel[model] = byModel[model].Add(used)
			delete(byModel, id)
		}
	}
	return model, cli.Consumption{Usage: sent.Quota.usage(), ByModel: byModel}
}

// picksModel reports whether Gemini itself chooses the model. In this case, the ID is "auto" or starts with "auto".
// Gemini reports the chosen model only for the first call of a turn. It counts later calls under the ID "auto".
func picksModel(id cli.ModelID) bool { return strings.HasPrefix(string(id), "auto") }

// hiddenFailure implements acp.Quirks.HiddenFailure. Gemini reports tokens at the end of a model call, so an answer
// without tokens is incomplete.
func hiddenFailure(agent cli.Agent, answer string, r cli.Result) *cli.Failure {
	switch {
	case answer == "":
		return cli.Failf(cli.UnknownFailure, agent, "failure.empty-answer")
	case r.Consumed.ByModel != nil && r.Consumed.Usage == cli.Usage{}:
		return cli.Failf(cli.NetworkDown, agent, "failure.broke-off")
	}
	return nil
}
