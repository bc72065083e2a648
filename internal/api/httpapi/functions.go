package httpapi

import (
	"net/http"
	"strings"

	"dalmatiner/internal/query"
)

// function is an entry of /functions: the keys of the original, and behind
// them ours.
type function struct {
	Name      string   `json:"name"`
	Desc      string   `json:"desc"` // as in "avg(metric, time) -> metric"
	Help      string   `json:"help"` // one line
	Combiner  string   `json:"combiner_type"`
	Signature []string `json:"signature"`
	Return    string   `json:"return"`

	Group   string `json:"group"`
	Example string `json:"example"`
	Since   string `json:"since"`
	Note    string `json:"note,omitempty"`
}

// functions lists the functions of the language from the registry that runs
// them.
func (a *api) functions(w http.ResponseWriter, r *http.Request) error {
	asked, err := negotiate(r, formJSON, formMsgpack, formText)
	if err != nil {
		return err
	}
	list := []function{}
	for _, f := range query.Functions() {
		list = append(list, function{
			Name: f.Name, Desc: f.Help, Help: f.About, Combiner: f.Combiner, Signature: f.Signature,
			Return: f.Returns,
			Group:  f.Group, Example: f.Example, Since: string(f.Since), Note: f.Note,
		})
	}
	if asked == formText {
		return respond(w, http.StatusOK, typeText, []byte(functionsText(list)))
	}
	return writeValue(w, asked, list)
}

// functionsText is one paragraph for each group, one line for each function.
func functionsText(list []function) string {
	var b strings.Builder
	group := ""
	for _, f := range list {
		if f.Group != group {
			if group != "" {
				b.WriteString("\n")
			}
			group = f.Group
			b.WriteString(group + "\n")
		}
		b.WriteString("  " + f.Desc + ": " + f.Help + "\n")
	}
	return b.String()
}
