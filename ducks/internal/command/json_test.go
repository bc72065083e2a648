package command

import (
	"reflect"
	"strings"
	"testing"
)

// Every command has --json, but for serve, which logs.
func TestEveryCommandHasJSON(t *testing.T) {
	var look func(name string, of reflect.Type)
	look = func(name string, of reflect.Type) {
		leaf := true
		for i := range of.NumField() {
			if f := of.Field(i); strings.Contains(string(f.Tag), `cmd:""`) {
				leaf = false
				look(name+" "+strings.ToLower(f.Name), f.Type)
			}
		}
		if _, has := of.FieldByName("JSON"); leaf && !has && name != " serve" {
			t.Errorf("ducks%s has no --json", name)
		}
	}
	look("", reflect.TypeFor[Grammar]())
}
