/* All kinds of panels; each file registers its own. */
import './control.js';
import './chart.js';
import './accuracy.js';
import './parameters.js';
import './changes.js';
import './rules.js';
import './checkpoints.js';
import './configuration.js';
import './log.js';
import './tasks.js';
import './system.js';
import './network.js';
import './histogram.js';
import './draw.js';
import './maximise.js';
import './game.js';
import './text.js';
