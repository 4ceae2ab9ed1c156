#!/bin/bash
# The short form of kill_resume.sh: four runs that are killed and resumed until they are through.
exec "$(dirname "$0")/kill_resume.sh" 4
